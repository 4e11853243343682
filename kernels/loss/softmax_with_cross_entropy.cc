// softmax_with_cross_entropy: Softmax = softmax of Logits along `axis`; Loss = -log of it at Label,
// 0 for ignored labels, or with `soft_label` the sum of -Label log Softmax. Without `use_softmax`
// Logits are probabilities already.
#include "kernels/loss/cross_entropy.h"
#include "kernels/nn/softmax.h"
#include "kernels/util/copy.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kLogits = 0;
constexpr int kLabel = 1;
constexpr int kSoftmax = 0;
constexpr int kLoss = 1;

struct SoftmaxLossAttrs {
  bool soft_label = false;
  bool use_softmax = true;
  int64_t ignore_index = -100;
  int64_t axis = -1;
};

// `numeric_stable_mode` is of no concern: there is no other.
SoftmaxLossAttrs ReadSoftmaxLossAttrs(AttrReader& reader) {
  return {reader.Bool("soft_label", false), reader.Bool("use_softmax", true),
          reader.Int("ignore_index", -100), reader.Int("axis", -1)};
}

absl::Status InferSoftmaxLoss(InferContext& ctx) {
  const auto& attrs = ctx.attrs<SoftmaxLossAttrs>();
  const Tensor& logits = ctx.input(kLogits);
  const Tensor& label = ctx.input(kLabel);
  INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(attrs.axis, logits.shape.rank()));
  Shape loss = logits.shape;
  loss[axis] = 1;
  const Shape& wanted = attrs.soft_label ? logits.shape : loss;
  if (label.shape != wanted) {
    return InvalidArgument("input 'Label' has shape ", ToString(label.shape), ", expected ",
                           ToString(wanted));
  }
  if (attrs.soft_label && label.dtype != logits.dtype) {
    return InvalidArgument("input 'Label' is ", DescribeType(label), ", expected ",
                           Name(logits.dtype));
  }
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
  const Lines lines = LinesAlong(logits.shape, *NormalizeAxis(attrs.axis, logits.shape.rank()));
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
    .parse = ParseAttrs<SoftmaxLossAttrs, ReadSoftmaxLossAttrs>,
    .infer = InferSoftmaxLoss,
    .kernels = {{DType::kFloat32, SoftmaxLoss<float>}, {DType::kFloat64, SoftmaxLoss<double>}},
    .inplace = {{kLogits, kSoftmax}},
});

}  // namespace
}  // namespace interp
