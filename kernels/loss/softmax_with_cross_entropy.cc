// softmax_with_cross_entropy: Softmax = softmax of Logits along `axis`; Loss = -log of it at Label,
// 0 for ignored labels, or with `soft_label` the sum of -Label log Softmax. Without `use_softmax`
// Logits are probabilities already.
#include "kernels/loss/cross_entropy.h"
#include "kernels/loss/softmax_loss.h"
#include "kernels/nn/softmax.h"
#include "kernels/util/copy.h"

namespace interp {
namespace {

constexpr int kLogits = 0;
constexpr int kLabel = 1;
constexpr int kSoftmax = 0;
constexpr int kLoss = 1;

absl::Status InferSoftmaxLoss(InferContext& ctx) {
  const auto& attrs = ctx.attrs<SoftmaxLossAttrs>();
  const Tensor& logits = ctx.input(kLogits);
  const Tensor& label = ctx.input(kLabel);
  INTERP_ASSIGN_OR_RETURN(const Shape loss, SoftmaxLossShape(attrs, logits, label));
  ctx.ShareShape(kLogits, kSoftmax);
  ctx.SetShape(kLoss, loss);
  ctx.output(kLoss).lod = logits.lod;
  return absl::OkStatus();
}

template <typename T>
absl::Status SoftmaxLoss(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SoftmaxLossAttrs>();
  const Tensor& logits = ctx.input(kLogits);
  const Tensor& label = ctx.input(kLabel);
  Tensor& softmax = ctx.output(kSoftmax);
  if (attrs.use_softmax) {
    nn::RunSoftmax<T, false>(ctx.num_threads(), logits, attrs.axis, softmax.mutable_data<T>());
  } else {
    CopyUnlessShared(logits, softmax);
  }
  const Lines lines = LinesAlong(logits.shape, attrs.axis);
  T* const loss = ctx.output(kLoss).mutable_data<T>();
  const T* const x = softmax.data<T>();
  if (!attrs.soft_label) return HardLoss(lines, x, label, attrs.ignore_index, loss);
  SoftCrossEntropy(ctx.num_threads(), lines, x, label.data<T>(), loss);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "softmax_with_cross_entropy",
    .inputs = {{"Logits"}, {"Label", kAnyDType}},
    .outputs = {{"Softmax"}, {"Loss"}},
    .parse = ParseAttrs<SoftmaxLossAttrs, SoftmaxLossAttrs::Read>,
    .infer = InferSoftmaxLoss,
    .kernels = {{DType::kFloat32, SoftmaxLoss<float>}, {DType::kFloat64, SoftmaxLoss<double>}},
    .inplace = {{kLogits, kSoftmax}},
    .gradient = {.inputs = {"Label", "Softmax", "Loss@GRAD"}, .outputs = {"Logits@GRAD"}},
});

}  // namespace
}  // namespace interp
