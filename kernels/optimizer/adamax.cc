// adamax: m = b1 m + (1 - b1) g; u = max(|g|, b2 u + epsilon); p -= l / (1 - B1) m / u. B1, beta1
// to the power of the number of steps, is advanced by an op of its own.
#include <cmath>

#include "kernels/optimizer/definition.h"
#include "kernels/optimizer/update_attrs.h"

namespace interp::optimizer {
namespace {

constexpr Form<2> kAdamax = {
    .states = {{{"Moment", "MomentOut"}, {"InfNorm", "InfNormOut"}}},
};
constexpr int kBeta1Pow = kAdamax.kFirstOther;

AdamaxAttrs ReadAttrs(AttrReader& reader) {
  return {reader.Float("beta1", 0.9f), reader.Float("beta2", 0.999f),
          reader.Float("epsilon", 1e-8f)};
}

template <typename M>
struct Rule {
  M rate, beta1, beta2, epsilon;
  M operator()(M p, M g, std::array<M, 2>& state) const {
    state[0] = beta1 * state[0] + (1 - beta1) * g;
    const M decayed = beta2 * state[1] + epsilon;
    const M magnitude = std::abs(g);
    state[1] = magnitude > decayed ? magnitude : decayed;
    return p - rate * (state[0] / state[1]);
  }
};

absl::Status InferAdamax(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckScalar(ctx, kBeta1Pow, "Beta1Pow"));
  return InferUpdate<kAdamax>(ctx);
}

template <typename M>
absl::Status Adamax(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<AdamaxAttrs>();
  const M rate = LearningRate<M>(ctx) / (1 - ScalarOf<M>(ctx.input(kBeta1Pow)));
  return RunUpdate<M, kAdamax>(ctx, Rule<M>{rate, attrs.beta1, attrs.beta2, attrs.epsilon});
}

OpDef AdamaxDef() {
  OpDef def = UpdateDef<kAdamax>("adamax", UpdateKernels(Adamax<float>, Adamax<double>));
  def.inputs.push_back({"Beta1Pow", kAnyDType});
  def.infer = InferAdamax;
  def.parse = ParseAttrs<AdamaxAttrs, ReadAttrs>;
  return def;
}

INTERP_REGISTER_OP(AdamaxDef());

}  // namespace
}  // namespace interp::optimizer
