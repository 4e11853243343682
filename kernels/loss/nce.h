// nce, noise-contrastive estimation: attributes, shapes and the distribution of the noise, for both
// directions.
#pragma once

#include <cmath>
#include <vector>

#include "core/op_def.h"

namespace interp {

enum class NceSampler : uint8_t { kUniform, kLogUniform, kCustom };

struct NceAttrs {
  int64_t classes = 0;
  int64_t negatives = 10;  // samples of noise per row
  NceSampler sampler = NceSampler::kUniform;
  int32_t seed = 0;
  std::vector<int64_t> chosen;  // custom_neg_classes: the noise of every row; empty: it is drawn
};

NceAttrs ReadNceAttrs(AttrReader& reader);

// The first inputs of nce and of its gradient.
inline constexpr int kNceInput = 0;
inline constexpr int kNceLabel = 1;
inline constexpr int kNceWeight = 2;
inline constexpr int kNceBias = 3;
inline constexpr int kNceSampleWeight = 4;
inline constexpr int kNceProbs = 5;
inline constexpr int kNceAlias = 6;
inline constexpr int kNceAliasProbs = 7;

// Checks Input [N,D], Label [N,T], Weight [K,D], Bias [K,1], SampleWeight [N] and the custom
// distribution; the shape of SampleLabels, [N, T + negatives].
absl::StatusOr<Shape> ResolveNce(const OpContext& ctx);

// Labels per row of Input.
inline int64_t NceTrueClasses(const OpContext& ctx) {
  const Shape& label = ctx.input(kNceLabel).shape;
  return label.rank() == 2 ? label[1] : 1;
}

// How often noise of class `label` is to be expected among the samples of a row. Rounded to float
// as in Paddle. REQUIRES: a class of the distribution.
inline float ExpectedNoise(const OpContext& ctx, int64_t label) {
  const auto& attrs = ctx.attrs<NceAttrs>();
  const auto negatives = static_cast<float>(attrs.negatives);
  switch (attrs.sampler) {
    case NceSampler::kUniform:
      return 1.0f / static_cast<float>(attrs.classes) * negatives;
    case NceSampler::kLogUniform: {
      const auto range = static_cast<float>(std::log(static_cast<double>(attrs.classes)));
      const auto value = static_cast<double>(label);
      return static_cast<float>(std::log((value + 2.0) / (value + 1.0)) / range) * negatives;
    }
    default:
      return ctx.input(kNceProbs).data<float>()[label] * negatives;
  }
}

}  // namespace interp
