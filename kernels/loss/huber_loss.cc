// huber_loss: r = Y - X; Out = r^2 / 2 where |r| <= delta, else delta (|r| - delta / 2).
#include <cmath>

#include "kernels/loss/loss_attrs.h"
#include "kernels/loss/pair_loss.h"
#include "kernels/util/check_shape.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;
constexpr int kResidual = 1;

absl::Status InferHuberLoss(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kY, "Y", 0, "X"));
  ctx.ShareShape(kX, kOut);
  ctx.SetShape(kResidual, ctx.input(kX).shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status HuberLoss(KernelContext& ctx) {
  const T delta = static_cast<T>(ctx.attrs<HuberAttrs>().delta);
  const T* const x = ctx.input(kX).data<T>();
  const T* const y = ctx.input(kY).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  Tensor* const residual_out = ctx.optional_output(kResidual);
  T* const residual = residual_out != nullptr ? residual_out->mutable_data<T>() : nullptr;
  ParallelFor(ctx.num_threads(), ctx.input(kX).numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const T r = y[i] - x[i];
                  const T size = std::abs(r);
                  out[i] = size <= delta ? T(0.5) * r * r : delta * (size - T(0.5) * delta);
                  if (residual != nullptr) residual[i] = r;
                }
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "huber_loss",
    .inputs = {{"X"}, {"Y"}},
    .outputs = {{"Out"}, {"Residual", kOptional}},
    .parse = ParseAttrs<HuberAttrs, HuberAttrs::Read>,
    .infer = InferHuberLoss,
    .kernels = {{DType::kFloat32, HuberLoss<float>}, {DType::kFloat64, HuberLoss<double>}},
    .gradient = {.inputs = {"Residual", "Out@GRAD"}, .outputs = {"X@GRAD", "Y@GRAD"}},
});

}  // namespace
}  // namespace interp
