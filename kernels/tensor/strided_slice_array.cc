// strided_slice_array: what strided_slice is of tensor arrays (passes/import/array_ops.h). Out =
// every `strides`-th element of Input from `starts` to `ends` (exclusive); they share memory. With
// its gradient, which is 0 for the elements that were not taken.
#include "kernels/tensor/array_gradient.h"
#include "kernels/tensor/input_gradient.h"
#include "kernels/tensor/strided_window.h"

namespace interp {
namespace {

using strided_slice::FindElements;
using strided_slice::kInput;
using strided_slice::kOutGrad;
using strided_slice::Progression;
using strided_slice::StridedSliceAttrs;

constexpr int kOut = 0;
constexpr int kInputGrad = 0;

absl::Status StridedSliceArray(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Progression along, FindElements(ctx));
  const std::vector<Tensor>& input = ctx.input_array(kInput);
  // Out may be Input.
  std::vector<Tensor> elements;
  for (int64_t i = 0; i < along.size; ++i) elements.push_back(input[along.first + i * along.step]);
  ctx.output_array(kOut) = std::move(elements);
  return absl::OkStatus();
}

absl::Status StridedSliceArrayGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Progression along, FindElements(ctx));
  const std::vector<Tensor>& gradients = ctx.input_array(kOutGrad);
  INTERP_RETURN_IF_ERROR(CheckNumGradients(gradients, along.size));
  return SpreadGradients(ctx, kInput, kInputGrad, along.first, along.step, gradients);
}

INTERP_REGISTER_OP(OpDef{
    .type = "strided_slice_array",
    .inputs = strided_slice::Inputs(kTensorArray),
    .outputs = {{"Out", kTensorArray}},
    .parse = ParseAttrs<StridedSliceAttrs, strided_slice::ReadStridedSliceAttrs>,
    .kernels = {{DType::kUndefined, StridedSliceArray}},
    .dynamic_outputs = true,
    .gradient = InputGradient(strided_slice::Inputs(0)),
});

INTERP_REGISTER_OP(OpDef{
    .type = "strided_slice_array_grad",
    .inputs = WithOutGrad(strided_slice::Inputs(kTensorArray), kTensorArray),
    .outputs = {{"Input@GRAD", kTensorArray}},
    .parse = ParseAttrs<StridedSliceAttrs, strided_slice::ReadStridedSliceAttrs>,
    .kernel_dtype = [](const DTypeContext& ctx) { return ctx.input(kOutGrad); },
    .kernels = {{DType::kUndefined, StridedSliceArrayGrad}},
    .dynamic_outputs = true,
});

}  // namespace
}  // namespace interp
