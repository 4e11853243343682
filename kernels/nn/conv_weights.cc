#include "kernels/nn/conv_weights.h"

#include <cmath>
#include <type_traits>

namespace interp::nn {
namespace {

template <typename T>
std::vector<float> DenseFilterOf(const Tensor& filter) {
  const ImageView view = ViewImage(filter, /*channels_last_dims=*/false);
  std::vector<T> values(static_cast<size_t>(filter.numel()));
  CopyImage(view, filter.data<T>(), DenseChannelsFirst(view), values.data(), /*num_threads=*/1);
  if constexpr (std::is_same_v<T, float>) return values;
  return std::vector<float>(values.begin(), values.end());
}

void FoldBatchNorm(const KernelContext& ctx, float epsilon, FoldedWeights& folded) {
  const std::vector<float> scale = ChannelValues(ctx.input(kConvBnScale));
  const std::vector<float> shift = ChannelValues(ctx.input(kConvBnBias));
  const std::vector<float> mean = ChannelValues(ctx.input(kConvBnMean));
  const std::vector<float> variance = ChannelValues(ctx.input(kConvBnVariance));
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

std::vector<float> DenseFilter(const Tensor& filter) {
  if (filter.dtype == DType::kBFloat16) return DenseFilterOf<bfloat16>(filter);
  if (filter.dtype == DType::kInt8) return DenseFilterOf<int8_t>(filter);
  return DenseFilterOf<float>(filter);
}

std::vector<float> ChannelValues(const Tensor& tensor) {
  if (tensor.dtype == DType::kBFloat16) {
    return std::vector<float>(tensor.data<bfloat16>(), tensor.data<bfloat16>() + tensor.numel());
  }
  return std::vector<float>(tensor.data<float>(), tensor.data<float>() + tensor.numel());
}

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
  FoldedWeights folded;
  folded.filter = DenseFilter(filter);
  if (HasBias(ctx, attrs)) folded.bias.resize(filter.shape[0]);
  if (const Tensor* bias = ctx.optional_input(kConvBias)) {
    folded.bias = ChannelValues(*bias);
  }
  if (attrs.batch_norm) FoldBatchNorm(ctx, attrs.epsilon, folded);
  return folded;
}

}  // namespace interp::nn
