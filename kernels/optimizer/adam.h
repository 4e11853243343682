// What adam, adamw and merged_adam share.
//
//   m1 = b1 m1 + (1 - b1) g
//   m2 = b2 m2 + (1 - b2) g^2
//   p -= l sqrt(1 - B2) / (1 - B1) m1 / (sqrt(m2) + epsilon sqrt(1 - B2))
//
// B1 and B2 are the betas to the power of the number of steps, this one included; the op then
// multiplies them by the betas. adamw first has p *= 1 - l coeff.
#pragma once

#include <cmath>

#include "kernels/optimizer/definition.h"

namespace interp::optimizer {

struct AdamAttrs {
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float decay = 0;         // of adamw, in learning rates
  bool lazy = false;       // rows that selected rows do not list keep their moments
  bool keep_pows = false;  // other ops advance B1 and B2
};

inline AdamAttrs ReadAdam(AttrReader& reader) {
  return {.beta1 = reader.Float("beta1", 0.9f),
          .beta2 = reader.Float("beta2", 0.999f),
          .epsilon = reader.Float("epsilon", 1e-8f),
          .lazy = reader.Bool("lazy_mode", false),
          .keep_pows = reader.Bool("use_global_beta_pow", false)};
}

// Betas and what else a step has of one number.
template <typename M>
struct AdamStep {
  M rate;
  M beta1, beta2, epsilon;
  M pow1, pow2;  // B1 and B2
  M decay;
};

template <typename M>
struct AdamRule {
  M keep;  // of the parameter
  M beta1, beta2;
  M rate;
  M epsilon;

  explicit AdamRule(const AdamStep<M>& step)
      : keep(1 - step.rate * step.decay),
        beta1(step.beta1),
        beta2(step.beta2),
        rate(step.rate * std::sqrt(1 - step.pow2) / (1 - step.pow1)),
        epsilon(step.epsilon * std::sqrt(1 - step.pow2)) {}

  M operator()(M p, M g, std::array<M, 2>& moments) const {
    moments[0] = beta1 * moments[0] + (1 - beta1) * g;
    moments[1] = beta2 * moments[1] + (1 - beta2) * g * g;
    return p * keep - rate * (moments[0] / (std::sqrt(moments[1]) + epsilon));
  }
};

inline constexpr std::array<SlotPair, 2> kMoments = {
    {{"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}}};
inline constexpr std::array<SlotPair, 2> kBetaPows = {
    {{"Beta1Pow", "Beta1PowOut", 0, kOptional}, {"Beta2Pow", "Beta2PowOut", 0, kOptional}}};

// The outputs of B1 and B2, if any, for parameter i; `beta` is 1 where they stay as they are.
template <typename M>
void AdvancePow(const KernelContext& ctx, int output, size_t i, M beta) {
  const auto out = ctx.outputs(output);
  if (!out.empty()) SetScalar<M>(ScalarOf<M>(*ctx.inputs(InputOf(output))[i]) * beta, *out[i]);
}

}  // namespace interp::optimizer
