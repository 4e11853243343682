// Selected rows: merge_selected_rows adds up those that name the same row,
// get_tensor_from_selected_rows gives their values ([number of rows, ...], not the tall tensor),
// and extract_rows (before Paddle 2.0) which rows they are.
#include <algorithm>
#include <cstring>

#include "core/op_def.h"
#include "kernels/util/rows.h"

namespace interp {
namespace {

constexpr int kX = 0;
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

}  // namespace
}  // namespace interp
