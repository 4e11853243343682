// rank_loss_grad: Left@GRAD = Out@GRAD (sigmoid(Left - Right) - Label), Right@GRAD the opposite.
// margin_rank_loss_grad: X1@GRAD = -Out@GRAD Label Activated, X2@GRAD the opposite.
#include "kernels/loss/opposites.h"
#include "kernels/loss/pair_loss.h"
#include "kernels/loss/rank_loss.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

constexpr int kLabel = 0;

// Both outputs: the shape of Label, which input `grad` has, too.
absl::Status InferOpposites(InferContext& ctx, int grad) {
  const Shape& label = ctx.input(kLabel).shape;
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, grad, "Out@GRAD", label));
  ctx.ShareShape(kLabel, 0);
  ctx.ShareShape(kLabel, 1);
  return absl::OkStatus();
}

namespace rank_loss {

constexpr int kLeft = 1;
constexpr int kRight = 2;
constexpr int kOutGrad = 3;

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckRankLossInputs(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", ctx.input(kLabel).shape));
  ctx.SetShape(0, ctx.input(kLeft).shape);
  ctx.SetShape(1, ctx.input(kRight).shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status Run(KernelContext& ctx) {
  const T* const label = ctx.input(kLabel).data<T>();
  const T* const left = ctx.input(kLeft).data<T>();
  const T* const right = ctx.input(kRight).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  WriteOpposites<T>(ctx, ctx.input(kLabel).numel(),
                    [=](int64_t i) { return grad[i] * (Sigmoid(left[i] - right[i]) - label[i]); });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "rank_loss_grad",
    .inputs = {{"Label"}, {"Left"}, {"Right"}, {"Out@GRAD"}},
    .outputs = {{"Left@GRAD", kOptional}, {"Right@GRAD", kOptional}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, Run<float>}, {DType::kFloat64, Run<double>}},
});

}  // namespace rank_loss

namespace margin_rank_loss {

constexpr int kActivated = 1;
constexpr int kOutGrad = 2;

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kActivated, "Activated", 0, "Label"));
  return InferOpposites(ctx, kOutGrad);
}

template <typename T>
absl::Status Run(KernelContext& ctx) {
  const T* const label = ctx.input(kLabel).data<T>();
  const T* const activated = ctx.input(kActivated).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  WriteOpposites<T>(ctx, ctx.input(kLabel).numel(),
                    [=](int64_t i) { return -grad[i] * label[i] * activated[i]; });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "margin_rank_loss_grad",
    .inputs = {{"Label"}, {"Activated"}, {"Out@GRAD"}},
    .outputs = {{"X1@GRAD", kOptional}, {"X2@GRAD", kOptional}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, Run<float>}, {DType::kFloat64, Run<double>}},
});

}  // namespace margin_rank_loss
}  // namespace
}  // namespace interp
