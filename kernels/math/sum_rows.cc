#include "kernels/math/sum_rows.h"

#include <algorithm>
#include <optional>

#include "kernels/util/rows.h"

namespace interp {
namespace {

// Selected rows that say what all of the arguments say, one after the other.
template <typename T>
struct AllRows {
  std::vector<int64_t> rows;
  std::vector<T> values;
  std::optional<Shape> tall;
};

template <typename T>
absl::Status Append(const Variable& x, AllRows<T>& all) {
  INTERP_RETURN_IF_ERROR(CheckRows(x, "X"));
  if (x.selected_rows->rows.empty()) return absl::OkStatus();
  if (x.tensor.dtype != DTypeOf<T>) {
    return InvalidArgument("an argument of 'X' holds rows of ", Name(x.tensor.dtype),
                           ", others of ", Name(DTypeOf<T>));
  }
  if (all.tall.has_value() && *all.tall != TallShape(x)) {
    return InvalidArgument("arguments of 'X' hold rows of ", ToString(*all.tall), " and of ",
                           ToString(TallShape(x)));
  }
  all.tall = TallShape(x);
  const RowIndex& index = *x.selected_rows;
  all.rows.insert(all.rows.end(), index.rows.begin(), index.rows.end());
  const T* values = x.tensor.data<T>();
  all.values.insert(all.values.end(), values, values + x.tensor.numel());
  return absl::OkStatus();
}

// Out becomes the rows; where there is none at all it is like the first argument.
template <typename T>
absl::Status GiveRows(const KernelContext& ctx, int x_slot, const AllRows<T>& all, Variable& out) {
  const Variable& first = *ctx.input_variables(x_slot)[0];
  const Shape tall = all.tall.value_or(TallShape(first));
  if (tall.rank() == 0) return InvalidArgument("'X' has no value");
  const MergePlan plan = PlanMerge(all.rows);
  out.tensor.dtype = DTypeOf<T>;
  INTERP_RETURN_IF_ERROR(AllocateRows(ctx, plan.rows, tall, out));
  MergeValues(ctx.num_threads(), plan, RowWidth(out.tensor), all.values.data(),
              out.tensor.mutable_data<T>());
  return absl::OkStatus();
}

// Adds the rows to Out, which holds the sum of the tensors.
template <typename T>
absl::Status AddTo(const KernelContext& ctx, const AllRows<T>& all, Tensor& out) {
  if (!all.tall.has_value()) return absl::OkStatus();
  if (*all.tall != out.shape) {
    return InvalidArgument("arguments of 'X' are a tensor of ", ToString(out.shape),
                           " and rows of ", ToString(*all.tall));
  }
  const MergePlan plan = PlanMerge(all.rows);
  const int64_t width = RowWidth(out);
  T* const data = out.mutable_data<T>();
  const int64_t grain = GrainFor(width);
  ParallelFor(ctx.num_threads(), plan.size(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* const to = data + plan.rows[i] * width;
      for (int64_t p = plan.begins[i]; p < plan.begins[i + 1]; ++p) {
        const T* const from = all.values.data() + plan.from[p] * width;
        for (int64_t k = 0; k < width; ++k) to[k] += from[k];
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace

bool AnyRows(const OpContext& ctx, int slot) {
  const auto variables = ctx.input_variables(slot);
  return std::any_of(variables.begin(), variables.end(), HoldsRows);
}

template <typename T>
absl::Status AddRows(KernelContext& ctx, int x_slot, int out_slot) {
  AllRows<T> all;
  for (const Variable* x : ctx.input_variables(x_slot)) {
    if (!HoldsRows(x)) continue;
    INTERP_RETURN_IF_ERROR(Append(*x, all));
  }
  Variable& out = ctx.output_variable(out_slot);
  if (out.selected_rows.has_value()) return GiveRows(ctx, x_slot, all, out);
  return AddTo(ctx, all, out.tensor);
}

template absl::Status AddRows<float>(KernelContext&, int, int);
template absl::Status AddRows<double>(KernelContext&, int, int);

}  // namespace interp
