// nll_loss: -Weight[label] X[label] for logarithms X of probabilities, as they are, their sum, or
// their mean by weight. Total_weight is the sum of the weights, 0 without a reduction.
#include "kernels/loss/nll_loss.h"

namespace interp {
namespace {

constexpr int kOut = 0;
constexpr int kTotalWeight = 1;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out, ResolveNll(ctx));
  ctx.SetShape(kOut, out);
  ctx.SetShape(kTotalWeight, {});
  return absl::OkStatus();
}

template <typename T>
absl::Status NllLoss(KernelContext& ctx) {
  const LossReduction reduction = ctx.attrs<NllAttrs>().reduction;
  const T* const x = ctx.input(kNllX).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  T* const total = ctx.output(kTotalWeight).mutable_data<T>();
  *total = 0;
  if (reduction == LossReduction::kNone) {
    return ForEachNllLabel<T>(
        ctx, [&](int64_t i, int64_t at, T weight) { out[i] = at < 0 ? T{0} : -x[at] * weight; });
  }
  double loss = 0, weights = 0;
  INTERP_RETURN_IF_ERROR(ForEachNllLabel<T>(ctx, [&](int64_t, int64_t at, T weight) {
    if (at < 0) return;
    loss -= static_cast<double>(x[at]) * weight;
    weights += weight;
  }));
  *total = static_cast<T>(weights);
  const bool mean = reduction == LossReduction::kMean && weights != 0;
  *out = static_cast<T>(mean ? loss / weights : loss);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "nll_loss",
    .inputs = {{"X"}, {"Label", kAnyDType}, {"Weight", kOptional}},
    .outputs = {{"Out"}, {"Total_weight"}},
    .parse = ParseAttrs<NllAttrs, NllAttrs::Read>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, NllLoss<float>}, {DType::kFloat64, NllLoss<double>}},
    .gradient = {.inputs = {"X", "Label", "Total_weight", "Weight", "Out@GRAD"},
                 .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
