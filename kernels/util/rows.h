// Selected rows (core/variable.h): checks, and adding up those that name the same row.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/op_context.h"
#include "core/variable.h"
#include "kernels/util/parallel_for.h"

namespace interp {

// Whether a variable of a context holds selected rows. Kernels on a device have no variables, but
// what uses selected rows runs on the host.
inline bool HoldsRows(const Variable* variable) {
  return variable != nullptr && variable->selected_rows.has_value();
}
// Whether argument i of a slot is selected rows.
inline bool InputIsRows(const OpContext& ctx, int slot, size_t i = 0) {
  const auto variables = ctx.input_variables(slot);
  return i < variables.size() && HoldsRows(variables[i]);
}
inline bool OutputIsRows(const OpContext& ctx, int slot) {
  const auto variables = ctx.output_variables(slot);
  return !variables.empty() && HoldsRows(variables[0]);
}

// Elements of one row.
int64_t RowWidth(const Tensor& values);

// InvalidArgument unless the rows fit the values and the height. `name` is the slot's, for
// messages.
absl::Status CheckRows(const Variable& variable, absl::string_view name);

// The shape of the tall tensor of which `variable` holds rows.
Shape TallShape(const Variable& variable);

// Which of the given rows add up to which merged one.
struct MergePlan {
  std::vector<int64_t> rows;    // ascending, each once
  std::vector<int64_t> begins;  // of each in `from`, and the end
  std::vector<int64_t> from;    // positions in the given rows: those of one row in their order

  int64_t size() const { return static_cast<int64_t>(rows.size()); }
};
MergePlan PlanMerge(absl::Span<const int64_t> rows);

// out[i] = sum of the values at the positions of merged row i, in their order: results do not
// depend on the number of threads.
template <typename T, typename C>
void MergeValues(int num_threads, const MergePlan& plan, int64_t width, const T* values, C* out) {
  const int64_t grain = GrainFor(width);
  ParallelFor(num_threads, plan.size(), grain, [&, values, out](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      C* const to = out + i * width;
      const T* first = values + plan.from[plan.begins[i]] * width;
      for (int64_t k = 0; k < width; ++k) to[k] = static_cast<C>(first[k]);
      for (int64_t p = plan.begins[i] + 1; p < plan.begins[i + 1]; ++p) {
        const T* const more = values + plan.from[p] * width;
        for (int64_t k = 0; k < width; ++k) to[k] += static_cast<C>(more[k]);
      }
    }
  });
}

// Whether an input and the output that is to be of its kind are selected rows. InvalidArgument
// where only one of them is.
absl::StatusOr<bool> AreRows(const KernelContext& ctx, int input_slot, int output_slot);

// For a kernel that gives Out as selected rows where X is, with the same rows: gives Out rows and
// memory for values like those of X. Tensors are left alone.
absl::Status GiveRowsOf(const KernelContext& ctx, int input_slot, int output_slot);

// The same as an element-by-element kernel of X and Out that `kRun` computes from their values.
template <absl::Status (*kRun)(KernelContext&)>
absl::Status WithRows(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(GiveRowsOf(ctx, /*input_slot=*/0, /*output_slot=*/0));
  return kRun(ctx);
}

// `out` becomes what selected rows `x` say, each row once: in ascending order, or as given where
// none repeats. It may be `x` itself.
absl::Status MergeRows(const KernelContext& ctx, const Variable& x, Variable& out);

// Replaces each element v by op(v).
template <typename T, typename Op>
void MapInPlace(int num_threads, Tensor& tensor, const Op& op) {
  T* const data = tensor.mutable_data<T>();
  ParallelFor(num_threads, tensor.numel(), kElementwiseGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) data[i] = op(data[i]);
  });
}

// Gives `variable` rows and memory for the values of a tall tensor of shape `tall`. The dtype is
// set.
absl::Status AllocateRows(const KernelContext& ctx, std::vector<int64_t> rows, const Shape& tall,
                          Variable& variable);

}  // namespace interp
