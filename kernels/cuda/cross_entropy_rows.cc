// Rows of cross entropies and their gradients.
#include <optional>

#include "kernels/cuda/cross_entropy.h"
#include "kernels/cuda/row.h"
#include "kernels/loss/loss_attrs.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/lines.h"

namespace interp::cuda {
namespace {

LineShape LinesOf(const Shape& shape, int64_t axis) {
  const Lines lines = LinesAlong(shape, axis);
  return {lines.outer, lines.length, lines.inner};
}

Labels LabelsOf(const Tensor& tensor, bool soft, int64_t ignored) {
  return {.data = tensor.raw_data(), .dtype = tensor.dtype, .soft = soft, .ignored = ignored};
}

absl::Status SoftmaxLoss(KernelContext& ctx) {
  constexpr int kLogits = 0;
  constexpr int kLabel = 1;
  constexpr int kSoftmax = 0;
  constexpr int kLoss = 1;
  const auto& attrs = ctx.attrs<SoftmaxLossAttrs>();
  return CrossEntropy({.shape = LinesOf(ctx.input(kLogits).shape, attrs.axis),
                       .x = ctx.input(kLogits).data<float>(),
                       .labels = LabelsOf(ctx.input(kLabel), attrs.soft_label, attrs.ignore_index),
                       .of_logits = attrs.use_softmax,
                       .softmax = ctx.output(kSoftmax).mutable_data<float>(),
                       .loss = ctx.output(kLoss).mutable_data<float>()},
                      StreamOf(ctx));
}

absl::Status SoftmaxLossGrad(KernelContext& ctx) {
  constexpr int kSoftmax = 0;
  constexpr int kLabel = 1;
  constexpr int kLossGrad = 2;
  const auto& attrs = ctx.attrs<SoftmaxLossAttrs>();
  return CrossEntropyGradient(
      {.shape = LinesOf(ctx.input(kSoftmax).shape, attrs.axis),
       .slope = attrs.use_softmax ? CrossEntropySlope::kLogits : CrossEntropySlope::kProbabilities,
       .probability = ctx.input(kSoftmax).data<float>(),
       .labels = LabelsOf(ctx.input(kLabel), attrs.soft_label, attrs.ignore_index),
       .loss_grad = ctx.input(kLossGrad).data<float>(),
       .x_grad = ctx.output(0).mutable_data<float>()},
      StreamOf(ctx));
}

// cross_entropy, and with MatchX cross_entropy2.
template <bool kMatches>
absl::Status ProbabilityLoss(KernelContext& ctx) {
  constexpr int kX = 0;
  constexpr int kLabel = 1;
  constexpr int kY = 0;
  constexpr int kMatchX = 2;
  const auto& attrs = ctx.attrs<CrossEntropyAttrs>();
  return CrossEntropy({.shape = LinesOf(ctx.input(kX).shape, -1),
                       .x = ctx.input(kX).data<float>(),
                       .labels = LabelsOf(ctx.input(kLabel), attrs.soft_label, attrs.ignore_index),
                       .loss = ctx.output(kY).mutable_data<float>(),
                       .matched = kMatches ? ctx.output(kMatchX).mutable_data<float>() : nullptr},
                      StreamOf(ctx));
}

template <bool kMatches>
absl::Status ProbabilityLossGrad(KernelContext& ctx) {
  constexpr int kYGrad = 0;
  constexpr int kLabel = 1;
  constexpr int kXOrMatch = 2;
  const auto& attrs = ctx.attrs<CrossEntropyAttrs>();
  const float* const x = ctx.input(kXOrMatch).data<float>();
  return CrossEntropyGradient(
      {.shape = LinesOf(ctx.output(0).shape, -1),
       .slope =
           attrs.soft_label ? CrossEntropySlope::kQuotients : CrossEntropySlope::kProbabilities,
       .probability = kMatches ? nullptr : x,
       .matched = kMatches ? x : nullptr,
       .labels = LabelsOf(ctx.input(kLabel), attrs.soft_label, attrs.ignore_index),
       .loss_grad = ctx.input(kYGrad).data<float>(),
       .x_grad = ctx.output(0).mutable_data<float>()},
      StreamOf(ctx));
}

template <bool kGradient>
absl::Status SigmoidLoss(KernelContext& ctx) {
  constexpr int kX = 0;
  constexpr int kLabel = 1;
  constexpr int kPosWeight = 2;
  constexpr int kOutGrad = 3;
  const auto& attrs = ctx.attrs<SigmoidCrossEntropyAttrs>();
  SigmoidCrossEntropyArguments args = {.x = ctx.input(kX).data<float>(),
                                       .label = ctx.input(kLabel).data<float>(),
                                       .weight = InputOrNull<float>(ctx, kPosWeight),
                                       .out = ctx.output(0).mutable_data<float>(),
                                       .size = ctx.input(kX).numel(),
                                       .ignored = attrs.ignore_index};
  if constexpr (kGradient) args.out_grad = ctx.input(kOutGrad).data<float>();
  std::optional<Workspace> count;
  if (attrs.normalize) {
    INTERP_ASSIGN_OR_RETURN(count, ctx.workspace(sizeof(*args.count)));
    args.count = count->data<unsigned long long>();
  }
  return SigmoidCrossEntropy(args, StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("softmax_with_cross_entropy", RowsFor({DType::kFloat32}, SoftmaxLoss));
INTERP_REGISTER_KERNELS("softmax_with_cross_entropy_grad",
                        RowsFor({DType::kFloat32}, SoftmaxLossGrad));
INTERP_REGISTER_KERNELS("cross_entropy", RowsFor({DType::kFloat32}, ProbabilityLoss<false>));
INTERP_REGISTER_KERNELS("cross_entropy2", RowsFor({DType::kFloat32}, ProbabilityLoss<true>));
INTERP_REGISTER_KERNELS("cross_entropy_grad",
                        RowsFor({DType::kFloat32}, ProbabilityLossGrad<false>));
INTERP_REGISTER_KERNELS("cross_entropy_grad2",
                        RowsFor({DType::kFloat32}, ProbabilityLossGrad<true>));
INTERP_REGISTER_KERNELS("sigmoid_cross_entropy_with_logits",
                        RowsFor({DType::kFloat32}, SigmoidLoss<false>));
INTERP_REGISTER_KERNELS("sigmoid_cross_entropy_with_logits_grad",
                        RowsFor({DType::kFloat32}, SigmoidLoss<true>));

}  // namespace
}  // namespace interp::cuda
