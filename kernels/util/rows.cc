#include "kernels/util/rows.h"

#include <numeric>

namespace interp {

int64_t RowWidth(const Tensor& values) {
  const int rank = values.shape.rank();
  return rank == 0 ? 1 : values.shape.numel(1, rank);
}

absl::Status CheckRows(const Variable& variable, absl::string_view name) {
  const RowIndex& index = *variable.selected_rows;
  const Tensor& values = variable.tensor;
  const int64_t count = static_cast<int64_t>(index.rows.size());
  if (!values.has_memory() && values.numel() != 0) {
    return NotFound("'", name, "' has no value: nothing has written it");
  }
  if (values.shape.rank() == 0 || values.shape[0] != count) {
    return InvalidArgument("'", name, "' has ", count, " rows and values of shape ",
                           ToString(values.shape));
  }
  for (const int64_t row : index.rows) {
    if (row < 0 || row >= index.height) {
      return InvalidArgument("'", name, "' has row ", row, ", expected 0 to ", index.height - 1);
    }
  }
  return absl::OkStatus();
}

Shape TallShape(const Variable& variable) {
  Shape shape = variable.tensor.shape;
  if (shape.rank() > 0) shape[0] = variable.selected_rows->height;
  return shape;
}

MergePlan PlanMerge(absl::Span<const int64_t> rows) {
  MergePlan plan;
  plan.from.resize(rows.size());
  std::iota(plan.from.begin(), plan.from.end(), int64_t{0});
  std::sort(plan.from.begin(), plan.from.end(), [rows](int64_t a, int64_t b) {
    return rows[a] != rows[b] ? rows[a] < rows[b] : a < b;
  });
  for (size_t i = 0; i < plan.from.size(); ++i) {
    const int64_t row = rows[plan.from[i]];
    if (!plan.rows.empty() && plan.rows.back() == row) continue;
    plan.rows.push_back(row);
    plan.begins.push_back(static_cast<int64_t>(i));
  }
  plan.begins.push_back(static_cast<int64_t>(rows.size()));
  return plan;
}

absl::StatusOr<bool> AreRows(const KernelContext& ctx, int input_slot, int output_slot) {
  const bool rows = InputIsRows(ctx, input_slot);
  if (rows != OutputIsRows(ctx, output_slot)) {
    return InvalidArgument("the first input is ", rows ? "selected rows" : "a tensor",
                           ", and the output is declared as something else");
  }
  if (rows) INTERP_RETURN_IF_ERROR(CheckRows(ctx.input_variable(input_slot), "X"));
  return rows;
}

absl::Status GiveRowsOf(const KernelContext& ctx, int input_slot, int output_slot) {
  INTERP_ASSIGN_OR_RETURN(const bool rows, AreRows(ctx, input_slot, output_slot));
  if (!rows) return absl::OkStatus();
  const Variable& x = ctx.input_variable(input_slot);
  Variable& out = ctx.output_variable(output_slot);
  if (&x == &out) return absl::OkStatus();
  *out.selected_rows = *x.selected_rows;
  out.tensor.shape = x.tensor.shape;
  out.tensor.dtype = x.tensor.dtype;
  return ctx.Allocate(out.tensor);
}

namespace {

template <typename T>
absl::Status MergeInto(const KernelContext& ctx, const MergePlan& plan, const Variable& x,
                       Variable& merged) {
  merged.tensor.dtype = DTypeOf<T>;
  INTERP_RETURN_IF_ERROR(AllocateRows(ctx, plan.rows, TallShape(x), merged));
  MergeValues(ctx.num_threads(), plan, RowWidth(x.tensor), x.tensor.data<T>(),
              merged.tensor.mutable_data<T>());
  return absl::OkStatus();
}

}  // namespace

absl::Status MergeRows(const KernelContext& ctx, const Variable& x, Variable& out) {
  if (!out.selected_rows.has_value()) {
    return InvalidArgument("'Out' is declared as a tensor, expected selected rows");
  }
  INTERP_RETURN_IF_ERROR(CheckRows(x, "X"));
  Variable merged;
  merged.selected_rows.emplace();
  MergePlan plan = PlanMerge(x.selected_rows->rows);
  if (plan.rows.size() == x.selected_rows->rows.size()) {
    plan.rows = x.selected_rows->rows;
    std::iota(plan.from.begin(), plan.from.end(), int64_t{0});
  }
  switch (x.tensor.dtype) {
    case DType::kFloat32:
      INTERP_RETURN_IF_ERROR(MergeInto<float>(ctx, plan, x, merged));
      break;
    case DType::kFloat64:
      INTERP_RETURN_IF_ERROR(MergeInto<double>(ctx, plan, x, merged));
      break;
    default:
      return InvalidArgument("'X' holds rows of ", Name(x.tensor.dtype),
                             ", expected float32 or float64");
  }
  out.tensor = std::move(merged.tensor);
  out.selected_rows = std::move(merged.selected_rows);
  return absl::OkStatus();
}

absl::Status AllocateRows(const KernelContext& ctx, std::vector<int64_t> rows, const Shape& tall,
                          Variable& variable) {
  Tensor& values = variable.tensor;
  values.shape = tall;
  values.shape[0] = static_cast<int64_t>(rows.size());
  values.layout = Layout::kPlain;
  values.lod.clear();
  variable.selected_rows->rows = std::move(rows);
  variable.selected_rows->height = tall[0];
  return ctx.Allocate(values);
}

}  // namespace interp
