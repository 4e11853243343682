// slice_array_grad, slice_array_dense_grad: an element of the array Input@GRAD = what Out@GRAD has
// for it where the slice took it, 0 elsewhere.
#include "kernels/tensor/array_gradient.h"
#include "kernels/tensor/input_gradient.h"
#include "kernels/tensor/slice_window.h"

namespace interp {
namespace {

using slice::ArrayPart;
using slice::kInput;
using slice::kOutGrad;
using slice::SliceAttrs;

constexpr int kInputGrad = 0;

DType GradientDType(const DTypeContext& ctx) { return ctx.input(kOutGrad); }

absl::Status SliceArrayGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const ArrayPart part, slice::FindArrayPart(ctx));
  const std::vector<Tensor>& gradients = ctx.input_array(kOutGrad);
  INTERP_RETURN_IF_ERROR(CheckNumGradients(gradients, part.end - part.begin));
  return SpreadGradients(ctx, kInput, kInputGrad, part.begin, /*step=*/1, gradients);
}

absl::Status SliceArrayDenseGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int64_t index, slice::FindArrayElement(ctx));
  return SpreadGradients(ctx, kInput, kInputGrad, index, /*step=*/1,
                         absl::MakeConstSpan(&ctx.input(kOutGrad), 1));
}

OpDef SliceArrayGradDef(absl::string_view type, int gradient_flags, KernelFn run) {
  return OpDef{
      .type = type,
      .inputs = WithOutGrad(slice::Inputs(kTensorArray), gradient_flags),
      .outputs = {{"Input@GRAD", kTensorArray}},
      .parse = ParseAttrs<SliceAttrs, slice::ReadSliceAttrs>,
      .kernel_dtype = GradientDType,
      .kernels = {{DType::kUndefined, run}},
      .dynamic_outputs = true,
  };
}

INTERP_REGISTER_OP(SliceArrayGradDef("slice_array_grad", kTensorArray, SliceArrayGrad));
INTERP_REGISTER_OP(SliceArrayGradDef("slice_array_dense_grad", /*gradient_flags=*/0,
                                     SliceArrayDenseGrad));

}  // namespace
}  // namespace interp
