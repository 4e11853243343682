// huber_loss_grad: for the residual r = Y - X, Y@GRAD = Out@GRAD r brought into [-delta, delta],
// and X@GRAD the opposite.
#include <algorithm>

#include "kernels/loss/loss_attrs.h"
#include "kernels/loss/opposites.h"
#include "kernels/util/gradient_shape.h"

namespace interp {
namespace {

constexpr int kResidual = 0;
constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;
constexpr int kYGrad = 1;

absl::Status InferHuberLossGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", ctx.input(kResidual).shape));
  ctx.ShareShape(kResidual, kXGrad);
  ctx.ShareShape(kOutGrad, kYGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status HuberLossGrad(KernelContext& ctx) {
  const T delta = static_cast<T>(ctx.attrs<HuberAttrs>().delta);
  const T* const residual = ctx.input(kResidual).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  WriteOpposites<T>(ctx, ctx.input(kResidual).numel(),
                    [=](int64_t i) { return -grad[i] * std::clamp(residual[i], -delta, delta); });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "huber_loss_grad",
    .inputs = {{"Residual"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
    .parse = ParseAttrs<HuberAttrs, HuberAttrs::Read>,
    .infer = InferHuberLossGrad,
    .kernels = {{DType::kFloat32, HuberLossGrad<float>}, {DType::kFloat64, HuberLossGrad<double>}},
});

}  // namespace
}  // namespace interp
