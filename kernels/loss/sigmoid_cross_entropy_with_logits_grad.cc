// sigmoid_cross_entropy_with_logits_grad: X@GRAD = Out@GRAD (sigmoid(X) - Label), 0 where the whole
// part of Label is `ignore_index`; with `normalize`, divided by the number of other labels. Like
// Paddle's, the form with pos_weight is sigmoid(X) pos_weight - Label.
#include "kernels/loss/pair_loss.h"
#include "kernels/loss/sigmoid_loss.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

constexpr int kX = sigmoid_loss::kX;
constexpr int kOutGrad = 3;
constexpr int kXGrad = 0;

absl::Status InferSigmoidCrossEntropyGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSigmoidLossInputs(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", ctx.input(kX).shape));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status SigmoidCrossEntropyGrad(KernelContext& ctx) {
  const SigmoidLossInputs<T> in(ctx);
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const x_grad = ctx.output(kXGrad).mutable_data<T>();
  const int32_t ignore_index = ctx.attrs<SigmoidCrossEntropyAttrs>().ignore_index;
  ParallelFor(ctx.num_threads(), in.n, pair_loss::kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T label = in.label[i];
      const T slope = Sigmoid(in.x[i]) * (in.weight != nullptr ? in.weight[i] : T{1}) - label;
      x_grad[i] = Convert<int32_t>(label) == ignore_index ? T{0} : slope * grad[i] / in.count;
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
