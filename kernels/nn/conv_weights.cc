#include "kernels/nn/conv_weights.h"

#include <cmath>

namespace interp::nn {
namespace {

void FoldBatchNorm(const KernelContext& ctx, float epsilon, FoldedWeights& folded) {
  const float* scale = ctx.input(kConvBnScale).data<float>();
  const float* shift = ctx.input(kConvBnBias).data<float>();
  const float* mean = ctx.input(kConvBnMean).data<float>();
  const float* variance = ctx.input(kConvBnVariance).data<float>();
  const size_t channels = folded.bias.size();
  const size_t per_channel = folded.filter.size() / channels;
  for (size_t c = 0; c < channels; ++c) {
    const double factor = scale[c] / std::sqrt(static_cast<double>(variance[c]) + epsilon);
    for (size_t i = 0; i < per_channel; ++i) {
      float& w = folded.filter[c * per_channel + i];
      w = static_cast<float>(w * factor);
    }
    folded.bias[c] = static_cast<float>((folded.bias[c] - mean[c]) * factor + shift[c]);
  }
}

}  // namespace

bool WeightsAreConstant(const KernelContext& ctx, const ConvAttrs& attrs) {
  if (!ctx.input_is_constant(kConvFilter)) return false;
  if (ctx.has_input(kConvBias) && !ctx.input_is_constant(kConvBias)) return false;
  for (int slot = kConvBnScale; attrs.batch_norm && slot <= kConvBnVariance; ++slot) {
    if (!ctx.input_is_constant(slot)) return false;
  }
  return true;
}

bool HasBias(const KernelContext& ctx, const ConvAttrs& attrs) {
  return ctx.has_input(kConvBias) || attrs.batch_norm;
}

FoldedWeights FoldWeights(const KernelContext& ctx, const ConvAttrs& attrs) {
  const Tensor& filter = ctx.input(kConvFilter);
  const ImageView view = ViewImage(filter, /*channels_last_dims=*/false);
  FoldedWeights folded;
  folded.filter.resize(filter.numel());
  CopyImage(view, filter.data<float>(), DenseChannelsFirst(view), folded.filter.data(),
            /*num_threads=*/1);
  if (HasBias(ctx, attrs)) folded.bias.resize(filter.shape[0]);
  if (const Tensor* bias = ctx.optional_input(kConvBias)) {
    std::copy_n(bias->data<float>(), folded.bias.size(), folded.bias.begin());
  }
  if (attrs.batch_norm) FoldBatchNorm(ctx, attrs.epsilon, folded);
  return folded;
}

}  // namespace interp::nn
