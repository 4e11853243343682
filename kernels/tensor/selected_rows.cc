// Selected rows: merge_selected_rows adds up those that name the same row,
// get_tensor_from_selected_rows gives their values ([number of rows, ...], not the tall tensor),
// extract_rows (before Paddle 2.0) which rows they are, and selected_rows_from_tensor, which Paddle
// does not have, makes selected rows of the two.
#include <algorithm>
#include <cstring>

#include "core/op_def.h"
#include "kernels/util/rows.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kRows = 1;
constexpr int kOut = 0;

absl::StatusOr<const Variable*> RowsOf(const KernelContext& ctx) {
  const Variable& x = ctx.input_variable(kX);
  if (!x.selected_rows.has_value()) {
    return InvalidArgument("'X' is a tensor, expected selected rows");
  }
  INTERP_RETURN_IF_ERROR(CheckRows(x, "X"));
  return &x;
}

absl::Status MergeSelectedRows(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Variable* x, RowsOf(ctx));
  return MergeRows(ctx, *x, ctx.output_variable(kOut));
}

absl::Status GetTensor(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Variable* x, RowsOf(ctx));
  Tensor& out = ctx.output(kOut);
  out.shape = x->tensor.shape;
  out.dtype = x->tensor.dtype;
  out.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  if (out.size_bytes() == 0) return absl::OkStatus();
  std::memcpy(out.mutable_raw_data(), x->tensor.raw_data(), out.size_bytes());
  return absl::OkStatus();
}

absl::Status ExtractRows(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Variable* x, RowsOf(ctx));
  const std::vector<int64_t>& rows = x->selected_rows->rows;
  Tensor& out = ctx.output(kOut);
  out.shape = {static_cast<int64_t>(rows.size()), 1};
  out.dtype = DType::kInt64;
  out.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  std::copy(rows.begin(), rows.end(), out.mutable_data<int64_t>());
  return absl::OkStatus();
}

struct FromTensorAttrs {
  std::vector<int64_t> shape;  // of the tall tensor
};

FromTensorAttrs ReadFromTensor(AttrReader& reader) {
  FromTensorAttrs attrs = {.shape = reader.Ints("shape")};
  if (attrs.shape.empty()) reader.Fail("attribute 'shape' is missing");
  return attrs;
}

absl::Status FromTensor(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& rows = ctx.input(kRows);
  Variable& out = ctx.output_variable(kOut);
  if (!out.selected_rows.has_value()) {
    return InvalidArgument("'Out' is declared as a tensor, expected selected rows");
  }
  if (x.shape.rank() == 0 || rows.numel() != x.shape[0]) {
    return InvalidArgument("'Rows' is ", DescribeType(rows), ", expected as many as rows of 'X' ",
                           ToString(x.shape));
  }
  const int64_t* numbers = rows.data<int64_t>();
  Variable made;
  made.selected_rows = RowIndex{.rows = {numbers, numbers + rows.numel()},
                                .height = ctx.attrs<FromTensorAttrs>().shape[0]};
  made.tensor = x;
  INTERP_RETURN_IF_ERROR(CheckRows(made, "Out"));
  out.tensor = x;
  out.selected_rows = std::move(made.selected_rows);
  return absl::OkStatus();
}

OpDef FromTensorDef() {
  return OpDef{
      .type = "selected_rows_from_tensor",
      .inputs = {{"X"}, {"Rows", kAnyDType}},
      .outputs = {{"Out", kMayBeRows}},
      .parse = ParseAttrs<FromTensorAttrs, ReadFromTensor>,
      .kernels = {{DType::kUndefined, FromTensor}},
      .dynamic_outputs = true,
  };
}

OpDef RowsDef(absl::string_view type, KernelFn run, int out_flags) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kMayBeRows | kAnyDType}},
      .outputs = {{"Out", out_flags}},
      .kernels = {{DType::kUndefined, run}},
      .dynamic_outputs = true,
  };
}

OpDef ExtractRowsDef() {
  OpDef def = RowsDef("extract_rows", ExtractRows, /*out_flags=*/0);
  def.infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOut, DType::kInt64); };
  return def;
}

INTERP_REGISTER_OP(RowsDef("merge_selected_rows", MergeSelectedRows, kMayBeRows));
INTERP_REGISTER_OP(RowsDef("get_tensor_from_selected_rows", GetTensor, /*out_flags=*/0));
INTERP_REGISTER_OP(ExtractRowsDef());
INTERP_REGISTER_OP(FromTensorDef());

}  // namespace
}  // namespace interp
