#include "kernels/math/reduction_grad.h"

#include "kernels/util/gradient_shape.h"

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
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", expected));
  if (ctx.has_input(reduction_grad::kOut)) {
    INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, reduction_grad::kOut, "Out", expected));
  }
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

absl::StatusOr<BroadcastPlan> PlanReductionGrad(const KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const DimSet reduced, DimsOf(ctx));
  const Tensor& x_grad = ctx.output(kXGrad);
  const Strides strides = KeptStrides(ctx.input(kOutGrad), reduced, x_grad.shape.rank());
  return PlanBroadcast(StridesOf(x_grad), strides, x_grad);
}

}  // namespace interp
