#include "kernels/math/reduction_grad.h"

namespace interp {

using reduction_grad::kOutGrad;
using reduction_grad::kX;
using reduction_grad::kXGrad;

OpDef ReductionGradDef(absl::string_view type, int x_flags, int out_flags,
                       std::vector<KernelDef> kernels) {
  return OpDef{.type = type,
               .inputs = {{"X", x_flags},
                          {"AxisTensor", kOptional | kAnyDType | kValueInInfer},
                          {"AxisTensorList", kOptional | kVariadic | kAnyDType | kValueInInfer},
                          {"Out", out_flags},
                          {"Out@GRAD"}},
               .outputs = {{"X@GRAD"}},
               .parse = ParseAttrs<ReductionAttrs, ReadReductionAttrs>,
               .infer = InferReductionGrad,
               .kernels = std::move(kernels),
               .layout = LayoutRule::kFollows};
}

absl::Status InferReductionGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const DimSet reduced, DimsOf(ctx));
  const Shape& x = ctx.input(kX).shape;
  const Shape expected = ReducedShape(x, reduced, ctx.attrs<ReductionAttrs>().keep_dim);
  for (const int slot : {kOutGrad, reduction_grad::kOut}) {
    const Tensor* tensor = ctx.optional_input(slot);
    // Older programs have shape [1] in place of a scalar.
    if (tensor == nullptr || tensor->shape == expected) continue;
    if (tensor->numel() == 1 && expected.numel() == 1) continue;
    return InvalidArgument("input '", slot == kOutGrad ? "Out@GRAD" : "Out", "' has shape ",
                           ToString(tensor->shape), ", expected ", ToString(expected), " for 'X' ",
                           ToString(x));
  }
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

absl::StatusOr<BroadcastPlan> PlanReductionGrad(const KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const DimSet reduced, DimsOf(ctx));
  const Tensor& x_grad = ctx.output(kXGrad);
  const DimStrides strides = KeptStrides(ctx.input(kOutGrad), reduced, x_grad.shape.rank());
  return PlanBroadcast(Strides(x_grad), strides, x_grad);
}

}  // namespace interp
