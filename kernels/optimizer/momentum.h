// The rule of momentum and merged_momentum: v = mu v + g; p -= l v, or with Nesterov's correction
// p -= l (g + mu v). A weight decay may be part of it: g += decay p.
#pragma once

#include "kernels/optimizer/definition.h"

namespace interp::optimizer {

struct MomentumAttrs {
  float mu = 0;
  bool nesterov = false;
};

struct OneMomentumAttrs {
  MomentumAttrs momentum;
  float decay = 0;
  float rescale_rows = 1;  // of gradients that are selected rows
};
struct MergedMomentumAttrs {
  MomentumAttrs momentum;
  std::vector<float> decay = {};  // of each parameter; empty: none
};

inline MomentumAttrs ReadMomentum(AttrReader& reader) {
  return {reader.Float("mu", 0), reader.Bool("use_nesterov", false)};
}

// The factor of a weight decay; no other method than l2_decay does anything.
inline float DecayOf(absl::string_view method, float coefficient) {
  return method == "l2_decay" ? coefficient : 0.0f;
}

template <typename M, bool kNesterov>
struct MomentumRule {
  M rate;
  M mu;
  M decay;
  M rescale = 1;  // of the gradient
  M operator()(M p, M g, std::array<M, 1>& velocity) const {
    g = rescale * g + decay * p;
    velocity[0] = mu * velocity[0] + g;
    return kNesterov ? p - rate * (g + mu * velocity[0]) : p - rate * velocity[0];
  }
};

}  // namespace interp::optimizer
