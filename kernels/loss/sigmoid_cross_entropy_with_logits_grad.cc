// sigmoid_cross_entropy_with_logits_grad: X@GRAD = Out@GRAD (sigmoid(X) - Label), 0 where the whole
// part of Label is `ignore_index`; with `normalize`, divided by the number of other labels. Like
// Paddle's, the form with pos_weight is sigmoid(X) pos_weight - Label.
#include "kernels/loss/loss_grad.h"
#include "kernels/loss/sigmoid_loss.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kLabel = 1;
constexpr int kPosWeight = 2;
constexpr int kOutGrad = 3;
constexpr int kXGrad = 0;

absl::Status InferSigmoidCrossEntropyGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckLossShape(ctx, kLabel, "Label", "X"));
  if (ctx.has_input(kPosWeight)) {
    INTERP_RETURN_IF_ERROR(CheckLossShape(ctx, kPosWeight, "pos_weight", "X"));
  }
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", ctx.input(kX).shape));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status SigmoidCrossEntropyGrad(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SigmoidCrossEntropyAttrs>();
  const int64_t n = ctx.input(kX).numel();
  const T* const x = ctx.input(kX).data<T>();
  const T* const label = ctx.input(kLabel).data<T>();
  const Tensor* const weights = ctx.optional_input(kPosWeight);
  const T* const weight = weights != nullptr ? weights->data<T>() : nullptr;
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const x_grad = ctx.output(kXGrad).mutable_data<T>();
  const int32_t ignore_index = attrs.ignore_index;
  const T count = attrs.normalize ? CountLabels(label, n, ignore_index) : T{1};
  ParallelFor(ctx.num_threads(), n, pair_loss::kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T slope = Sigmoid(x[i]) * (weight != nullptr ? weight[i] : T{1}) - label[i];
      x_grad[i] = Convert<int32_t>(label[i]) == ignore_index ? T{0} : slope * grad[i] / count;
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sigmoid_cross_entropy_with_logits_grad",
    .inputs = {{"X"}, {"Label"}, {"pos_weight", kOptional}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<SigmoidCrossEntropyAttrs, SigmoidCrossEntropyAttrs::Read>,
    .infer = InferSigmoidCrossEntropyGrad,
    .kernels = {{DType::kFloat32, SigmoidCrossEntropyGrad<float>},
                {DType::kFloat64, SigmoidCrossEntropyGrad<double>}},
    .inplace = {{kX, kXGrad}, {kOutGrad, kXGrad}},
});

}  // namespace
}  // namespace interp
