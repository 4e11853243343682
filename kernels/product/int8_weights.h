// Weights of convolutions and products of int8: whole numbers, and what brings sums of products
// back to real values.
#pragma once

#include <cstdint>
#include <vector>

#include "core/attr_reader.h"
#include "core/op_def.h"
#include "kernels/quant/quantize.h"

namespace interp::nn {

// How an op says what its weights and its results are quantised to.
struct Int8Attrs {
  // Sums of products times InputScale and FilterScale, by `range` less, are real values.
  float range = 1;
  // The weights are real values, which go onto `weight_grid` by FilterScale or, without one, by
  // their own largest magnitudes. Else they are whole numbers already.
  bool quantize_weights = false;
  bool per_channel = true;  // those magnitudes are by output channel
  QuantGrid weight_grid;
  QuantGrid out_grid;  // of results of int8
};
Int8Attrs ReadInt8Attrs(AttrReader& reader);

// By output channel: value = sum of products * input scale * factor + bias.
struct Int8Weights {
  std::vector<int8_t> values;  // output channel by output channel
  // In place of `values` where not all are whole numbers that fit int8, as adaround leaves them in
  // a frozen program; else empty.
  std::vector<float> real_values;
  std::vector<float> factors;
  std::vector<float> bias;
};

// The whole numbers of `weights`, dense real values or whole ones in memory order `view`, which has
// the output channels as its channels. `scale` is FilterScale, of one element or one by channel,
// and may be null. Bias is left empty.
absl::StatusOr<Int8Weights> QuantizeWeights(const Int8Attrs& attrs, const ChannelView& view,
                                            const std::vector<float>& weights, const Tensor* scale);

// Gives channels whose factor is 0 weights of 0 and factor 1 instead: their bias stays exact
// whatever it is divided by.
void NeutralizeZeroFactors(Int8Weights& weights);

// Checks a scale of activations; null is fine.
absl::Status CheckInt8Scale(const Tensor* scale, absl::string_view name);

// The longest sum of products that stays within int32.
inline constexpr int64_t kLongestInt8Sum = (int64_t{1} << 17) - 1;

}  // namespace interp::nn
