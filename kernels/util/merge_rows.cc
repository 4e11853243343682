#include "kernels/util/merge_rows.h"

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
  if (count > 0 && (values.shape.rank() == 0 || values.shape[0] != count)) {
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
