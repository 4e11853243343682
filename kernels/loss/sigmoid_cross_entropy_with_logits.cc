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

constexpr int kX = sigmoid_loss::kX;
constexpr int kOut = 0;

absl::Status InferSigmoidCrossEntropy(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSigmoidLossInputs(ctx));
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status SigmoidCrossEntropy(KernelContext& ctx) {
  const SigmoidLossInputs<T> in(ctx);
  T* const out = ctx.output(kOut).mutable_data<T>();
  const int32_t ignore_index = ctx.attrs<SigmoidCrossEntropyAttrs>().ignore_index;
  ParallelFor(ctx.num_threads(), in.n, pair_loss::kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T x = in.x[i];
      const T label = in.label[i];
      const T log_part = Log(T{1} + Exp(-std::abs(x)));
      const T loss = (x > T{0} ? x : T{0}) - x * label +
                     log_part * (in.weight != nullptr ? in.weight[i] : T{1});
      out[i] = (Convert<int32_t>(label) == ignore_index ? T{0} : loss) / in.count;
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
