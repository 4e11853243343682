#include "kernels/conv/conv_weights.h"

#include <cmath>
#include <type_traits>
#include <utility>

#include "core/constant_elements.h"
#include "kernels/nn/onednn.h"

namespace interp::nn {
namespace {

template <typename T>
std::vector<float> DenseFilterOf(const Tensor& filter) {
  const T* const data = filter.data<T>();
  if (filter.layout == Layout::kPlain) return std::vector<float>(data, data + filter.numel());
  const ImageView view = ViewImage(filter, /*channels_last_dims=*/false);
  std::vector<T> values(static_cast<size_t>(filter.numel()));
  CopyImage(view, data, DenseChannelsFirst(view), values.data(), /*num_threads=*/1);
  if constexpr (std::is_same_v<T, float>) return values;
  return std::vector<float>(values.begin(), values.end());
}

void FoldBatchNorm(const KernelContext& ctx, int first_slot, float epsilon, ChannelFold& fold) {
  const std::vector<float> scale = ChannelValues(ctx.input(first_slot));
  const std::vector<float> shift = ChannelValues(ctx.input(first_slot + 1));
  const std::vector<float> mean = ChannelValues(ctx.input(first_slot + 2));
  const std::vector<float> variance = ChannelValues(ctx.input(first_slot + 3));
  fold.factors.resize(fold.bias.size());
  for (size_t c = 0; c < fold.bias.size(); ++c) {
    const double factor = scale[c] / std::sqrt(static_cast<double>(variance[c]) + epsilon);
    fold.factors[c] = factor;
    fold.bias[c] = static_cast<float>((fold.bias[c] - mean[c]) * factor + shift[c]);
  }
}

// The numbers of two slots, either of which may be absent.
ScalarAffine AffineOf(const KernelContext& ctx, int first_slot) {
  const auto number = [&ctx](int slot, float absent) {
    const Tensor* const tensor = ctx.optional_input(slot);
    if (tensor == nullptr) return absent;
    if (tensor->dtype == DType::kBFloat16) return static_cast<float>(tensor->data<bfloat16>()[0]);
    return tensor->data<float>()[0];
  };
  return {number(first_slot, 1), number(first_slot + 1, 0)};
}

void FoldAffine(ScalarAffine affine, ChannelFold& fold) {
  fold.factors.resize(fold.bias.size(), 1.0);
  for (size_t c = 0; c < fold.bias.size(); ++c) {
    fold.factors[c] *= affine.scale;
    fold.bias[c] = fold.bias[c] * affine.scale + affine.shift;
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
  const ConvSlots& slots = attrs.slots;
  const auto is_constant = [&ctx](int slot) {
    return !ctx.has_input(slot) || ctx.input_is_constant(slot);
  };
  bool constant = is_constant(slots.filter) && is_constant(slots.bias);
  for (int i = 0; attrs.batch_norm && i < 4; ++i) {
    constant = constant && is_constant(slots.batch_norm + i);
  }
  for (int i = 0; attrs.pre_affine && i < 2; ++i) {
    constant = constant && is_constant(slots.pre_affine + i);
  }
  return constant;
}

bool HasBias(const KernelContext& ctx, const ConvAttrs& attrs) {
  return ctx.has_input(attrs.slots.bias) || attrs.batch_norm || attrs.pre_affine;
}

ChannelFold FoldOf(const KernelContext& ctx, const ConvAttrs& attrs) {
  return FoldOf(ctx, attrs, ctx.input(attrs.slots.filter).shape[0]);
}

ChannelFold FoldOf(const KernelContext& ctx, const ConvAttrs& attrs, int64_t out_channels) {
  const ConvSlots& slots = attrs.slots;
  ChannelFold fold;
  if (HasBias(ctx, attrs)) fold.bias.resize(static_cast<size_t>(out_channels));
  if (const Tensor* bias = ctx.optional_input(slots.bias)) fold.bias = ChannelValues(*bias);
  if (attrs.batch_norm) FoldBatchNorm(ctx, slots.batch_norm, attrs.epsilon, fold);
  if (attrs.pre_affine) FoldAffine(AffineOf(ctx, slots.pre_affine), fold);
  return fold;
}

ScalarAffine PostAffine(const KernelContext& ctx, const ConvAttrs& attrs) {
  return attrs.post_affine ? AffineOf(ctx, attrs.slots.post_affine) : ScalarAffine();
}

ConvEpilogue EpilogueOf(const KernelContext& ctx, const ConvAttrs& attrs) {
  return {HasBias(ctx, attrs), attrs.fuse_residual, attrs.activation, PostAffine(ctx, attrs)};
}

void ScaleChannels(absl::Span<const double> factors, std::vector<float>& filter) {
  if (factors.empty()) return;
  const size_t per_channel = filter.size() / factors.size();
  for (size_t c = 0; c < factors.size(); ++c) {
    for (size_t i = 0; i < per_channel; ++i) {
      float& w = filter[c * per_channel + i];
      w = static_cast<float>(w * factors[c]);
    }
  }
}

absl::StatusOr<FoldedWeights> FoldWeights(const KernelContext& ctx, const ConvAttrs& attrs) {
  INTERP_ASSIGN_OR_RETURN(const ConstantElements filter,
                          ConstantElements::Of(ctx.input(attrs.slots.filter)));
  FoldedWeights folded;
  INTERP_RETURN_IF_ERROR(CatchErrors([&] {
    ChannelFold fold = FoldOf(ctx, attrs);
    folded = {.filter = DenseFilter(*filter), .bias = std::move(fold.bias)};
    ScaleChannels(fold.factors, folded.filter);
    return absl::OkStatus();
  }));
  return folded;
}

}  // namespace interp::nn
