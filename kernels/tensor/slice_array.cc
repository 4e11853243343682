// What slice is of tensor arrays (passes/import/array_ops.h). slice_array: Out = the array of the
// elements of Input from `starts` to `ends` (exclusive), whose memory they share.
// slice_array_dense: Out = the element at `starts`, without a LoD, as in Paddle.
#include "kernels/control_flow/gradient_values.h"
#include "kernels/tensor/input_gradient.h"
#include "kernels/tensor/slice_window.h"

namespace interp {
namespace {

using slice::ArrayPart;
using slice::FindArrayElement;
using slice::FindArrayPart;
using slice::kInput;
using slice::SliceAttrs;

constexpr int kOut = 0;

absl::Status SliceArray(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const ArrayPart part, FindArrayPart(ctx));
  const auto first = ctx.input_array(kInput).begin();
  // Out may be Input.
  std::vector<Tensor> elements(first + part.begin, first + part.end);
  ctx.output_array(kOut) = std::move(elements);
  return absl::OkStatus();
}

absl::Status SliceArrayDense(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int64_t index, FindArrayElement(ctx));
  const Tensor& element = ctx.input_array(kInput)[index];
  if (!control_flow::HasValue(element)) {
    return NotFound("element ", index, " of the array has no value: nothing has written it");
  }
  Tensor& out = ctx.output(kOut);
  out = element;
  out.lod.clear();
  return absl::OkStatus();
}

OpDef SliceArrayDef(absl::string_view type, int out_flags, KernelFn run) {
  return OpDef{
      .type = type,
      .inputs = slice::Inputs(kTensorArray),
      .outputs = {{"Out", out_flags}},
      .parse = ParseAttrs<SliceAttrs, slice::ReadSliceAttrs>,
      .kernels = {{DType::kUndefined, run}},
      .dynamic_outputs = true,
      .gradient = InputGradient(slice::Inputs(0)),
  };
}

INTERP_REGISTER_OP(SliceArrayDef("slice_array", kTensorArray, SliceArray));
INTERP_REGISTER_OP(SliceArrayDef("slice_array_dense", /*out_flags=*/0, SliceArrayDense));

}  // namespace
}  // namespace interp
