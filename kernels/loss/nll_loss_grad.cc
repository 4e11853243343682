// nll_loss_grad: -Weight[label] Out@GRAD at the label's place, divided by Total_weight for a mean.
#include "kernels/loss/nll_loss.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/gradient_shape.h"

namespace interp {
namespace {

constexpr int kTotalWeight = 3;
constexpr int kOutGrad = 4;
constexpr int kXGrad = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out, ResolveNll(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", out));
  if (ctx.input(kTotalWeight).numel() != 1) {
    return InvalidArgument("input 'Total_weight' has shape ",
                           ToString(ctx.input(kTotalWeight).shape), ", expected one element");
  }
  ctx.ShareShape(kNllX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status NllLossGrad(KernelContext& ctx) {
  const LossReduction reduction = ctx.attrs<NllAttrs>().reduction;
  const T* const grad = ctx.input(kOutGrad).data<T>();
  const T total = *ctx.input(kTotalWeight).data<T>();
  const bool each = reduction == LossReduction::kNone;
  const T divisor = reduction == LossReduction::kMean && total != 0 ? total : T{1};
  FillZero(ctx.num_threads(), ctx.output(kXGrad));
  T* const x_grad = ctx.output(kXGrad).mutable_data<T>();
  return ForEachNllLabel<T>(ctx, [&](int64_t i, int64_t at, T weight) {
    if (at >= 0) x_grad[at] = -weight * grad[each ? i : 0] / divisor;
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "nll_loss_grad",
    .inputs = {{"X", kNoNeedBuffer},
               {"Label", kAnyDType},
               {"Weight", kOptional},
               {"Total_weight"},
               {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<NllAttrs, NllAttrs::Read>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, NllLossGrad<float>}, {DType::kFloat64, NllLossGrad<double>}},
});

}  // namespace
}  // namespace interp
