// sigmoid_cross_entropy_with_logits: Out = max(X, 0) - X Label + pos_weight log(1 + e^-|X|), 0
// where the whole part of Label is `ignore_index`. With `normalize`, divided by the number of
// labels that are not `ignore_index`.
#include <cmath>

#include "kernels/loss/pair_loss.h"
#include "kernels/loss/sigmoid_loss.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kLabel = 1;
constexpr int kPosWeight = 2;
constexpr int kOut = 0;

absl::Status InferSigmoidCrossEntropy(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckLossShape(ctx, kLabel, "Label", "X"));
  if (ctx.has_input(kPosWeight)) {
    INTERP_RETURN_IF_ERROR(CheckLossShape(ctx, kPosWeight, "pos_weight", "X"));
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status SigmoidCrossEntropy(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SigmoidCrossEntropyAttrs>();
  const int64_t n = ctx.input(kX).numel();
  const T* const x = ctx.input(kX).data<T>();
  const T* const label = ctx.input(kLabel).data<T>();
  const Tensor* const weights = ctx.optional_input(kPosWeight);
  const T* const weight = weights != nullptr ? weights->data<T>() : nullptr;
  T* const out = ctx.output(kOut).mutable_data<T>();
  const int32_t ignore_index = attrs.ignore_index;
  const T count = attrs.normalize ? CountLabels(label, n, ignore_index) : T{1};
  ParallelFor(ctx.num_threads(), n, pair_loss::kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T log_part = Log(T{1} + Exp(-std::abs(x[i])));
      const T loss = (x[i] > T{0} ? x[i] : T{0}) - x[i] * label[i] +
                     log_part * (weight != nullptr ? weight[i] : T{1});
      out[i] = (Convert<int32_t>(label[i]) == ignore_index ? T{0} : loss) / count;
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sigmoid_cross_entropy_with_logits",
    .inputs = {{"X"}, {"Label"}, {"pos_weight", kOptional}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SigmoidCrossEntropyAttrs, SigmoidCrossEntropyAttrs::Read>,
    .infer = InferSigmoidCrossEntropy,
    .kernels = {{DType::kFloat32, SigmoidCrossEntropy<float>},
                {DType::kFloat64, SigmoidCrossEntropy<double>}},
    .gradient = {.inputs = {"X", "Label", "pos_weight", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
