// kldiv_loss: the elements Target (log Target - X), 0 where Target <= 0; Loss has them as they are
// (`reduction` "none"), their mean, their sum, or their sum divided by the rows ("batchmean").
#include <algorithm>

#include "kernels/loss/loss_attrs.h"
#include "kernels/loss/pair_loss.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kTarget = 1;
constexpr int kLoss = 0;

absl::Status InferKlDivLoss(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckRank(ctx, kX, "X", 1, kMaxRank, "rank 1 or more"));
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kTarget, "Target", 0, "X"));
  if (ctx.attrs<KlDivAttrs>().reduction == LossReduction::kNone) {
    ctx.SetShape(kLoss, ctx.input(kX).shape);
  } else {
    ctx.SetShape(kLoss, {});
  }
  return absl::OkStatus();
}

template <typename T>
T Divergence(T x, T target) {
  return target > T{0} ? target * (T(Log(target)) - x) : T{0};
}

// In blocks, added up in double.
template <typename T>
double Total(const T* x, const T* target, int64_t n) {
  constexpr int64_t kBlock = 256;
  T block[kBlock];
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    for (int64_t i = 0; i < count; ++i) block[i] = Divergence(x[begin + i], target[begin + i]);
    for (int64_t i = 0; i < count; ++i) total += block[i];
  }
  return total;
}

template <typename T>
absl::Status KlDivLoss(KernelContext& ctx) {
  const Tensor& x_tensor = ctx.input(kX);
  const T* const x = x_tensor.data<T>();
  const T* const target = ctx.input(kTarget).data<T>();
  T* const loss = ctx.output(kLoss).mutable_data<T>();
  const int64_t n = x_tensor.numel();
  const LossReduction reduction = ctx.attrs<KlDivAttrs>().reduction;
  if (reduction == LossReduction::kNone) {
    ParallelFor(ctx.num_threads(), n, pair_loss::kGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) loss[i] = Divergence(x[i], target[i]);
    });
    return absl::OkStatus();
  }
  const double total = Total(x, target, n);
  const int64_t rows = x_tensor.shape[0];
  if (reduction == LossReduction::kMean) {
    *loss = static_cast<T>(total / static_cast<double>(n));
  } else if (reduction == LossReduction::kBatchMean && rows > 0) {
    *loss = static_cast<T>(total / static_cast<double>(rows));
  } else {
    *loss = static_cast<T>(total);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "kldiv_loss",
    .inputs = {{"X"}, {"Target"}},
    .outputs = {{"Loss"}},
    .parse = ParseAttrs<KlDivAttrs, KlDivAttrs::Read>,
    .infer = InferKlDivLoss,
    .kernels = {{DType::kFloat32, KlDivLoss<float>}, {DType::kFloat64, KlDivLoss<double>}},
    .gradient = {.inputs = {"X", "Target", "Loss@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
