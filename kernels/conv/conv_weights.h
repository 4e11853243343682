// The constant side of a convolution: filter and bias with a batch norm folded in.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "kernels/conv/conv_problem.h"

namespace interp::nn {

// Filter in dense O,I,kernel order and bias by output channel, ready to be packed.
struct FoldedWeights {
  std::vector<float> filter;
  std::vector<float> bias;  // empty: none
};

// True when filter, bias, batch norm and the affine behind it all never change, so that packed
// forms may be kept.
bool WeightsAreConstant(const KernelContext& ctx, const ConvAttrs& attrs);
// True when the convolution has a bias of its own, from the batch norm or from the affine behind
// it.
bool HasBias(const KernelContext& ctx, const ConvAttrs& attrs);

// The values of a filter of float32, bfloat16 or int8 in dense O,I,kernel order.
std::vector<float> DenseFilter(const Tensor& filter);
// Those of a vector by channel, of float32 or bfloat16.
std::vector<float> ChannelValues(const Tensor& tensor);

// What follows the sums of each output channel. y = (conv(x) + bias - mean) * scale / sqrt(variance
// + epsilon) + shift is a convolution itself.
struct ChannelFold {
  std::vector<double> factors;  // of the filter; empty: none
  std::vector<float> bias;      // empty: none
};
ChannelFold FoldOf(const KernelContext& ctx, const ConvAttrs& attrs);
// The same for a filter of other dims than O,I,kernel.
ChannelFold FoldOf(const KernelContext& ctx, const ConvAttrs& attrs, int64_t out_channels);

// A dense filter with each output channel multiplied by its factor.
void ScaleChannels(absl::Span<const double> factors, std::vector<float>& filter);

// What is done to the results behind the activation.
ScalarAffine PostAffine(const KernelContext& ctx, const ConvAttrs& attrs);

// What happens to the sums before they are stored.
ConvEpilogue EpilogueOf(const KernelContext& ctx, const ConvAttrs& attrs);

// Error: ResourceExhausted.
absl::StatusOr<FoldedWeights> FoldWeights(const KernelContext& ctx, const ConvAttrs& attrs);

}  // namespace interp::nn
