// kldiv_loss_grad: X@GRAD = -Target times the gradient of the loss, 0 where Target <= 0; divided by
// what the loss was divided by.
#include "kernels/loss/loss_attrs.h"
#include "kernels/loss/pair_loss.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/gradient_shape.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kTarget = 1;
constexpr int kLossGrad = 2;
constexpr int kXGrad = 0;

absl::Status InferKlDivLossGrad(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() == 0) return InvalidArgument("input 'X' has rank 0");
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kTarget, "Target", 0, "X"));
  const bool whole = ctx.attrs<KlDivAttrs>().reduction != LossReduction::kNone;
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kLossGrad, "Loss@GRAD", whole ? Shape() : x));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status KlDivLossGrad(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const LossReduction reduction = ctx.attrs<KlDivAttrs>().reduction;
  const T* const target = ctx.input(kTarget).data<T>();
  const T* const grad = ctx.input(kLossGrad).data<T>();
  T* const x_grad = ctx.output(kXGrad).mutable_data<T>();
  const bool each = reduction == LossReduction::kNone;
  T divisor = 1;
  if (reduction == LossReduction::kMean) divisor = static_cast<T>(x.numel());
  if (reduction == LossReduction::kBatchMean) divisor = static_cast<T>(x.shape[0]);
  ParallelFor(ctx.num_threads(), x.numel(), pair_loss::kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T slope = target[i] > T{0} ? -target[i] : T{0};
      x_grad[i] = slope * grad[each ? i : 0] / divisor;
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "kldiv_loss_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"Target"}, {"Loss@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<KlDivAttrs, KlDivAttrs::Read>,
    .infer = InferKlDivLossGrad,
    .kernels = {{DType::kFloat32, KlDivLossGrad<float>}, {DType::kFloat64, KlDivLossGrad<double>}},
});

}  // namespace
}  // namespace interp
