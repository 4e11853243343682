// proximal_gd: q = p - l g; p = sign(q) max(0, |q| - l l1) / (1 + l l2).
// proximal_adagrad: the same after m += g^2, with q = p - l g / sqrt(m).
#include <cmath>

#include "kernels/optimizer/definition.h"

namespace interp::optimizer {
namespace {

constexpr Form<0> kProximalGd = {};
constexpr Form<1> kProximalAdagrad = {.states = {{{"Moment", "MomentOut"}}}};

struct Attrs {
  float l1, l2;
};

Attrs ReadAttrs(AttrReader& reader) { return {reader.Float("l1", 0), reader.Float("l2", 0)}; }

template <typename M, size_t kStates>
struct Rule {
  M rate, threshold, divisor;
  M operator()(M p, M g, std::array<M, kStates>& moment) const {
    M step = rate * g;
    if constexpr (kStates == 1) {
      moment[0] += g * g;
      step /= std::sqrt(moment[0]);
    }
    const M q = p - step;
    const M rest = std::abs(q) - threshold;
    return std::copysign(rest > 0 ? rest : M{0}, q) / divisor;
  }
};

template <typename M, const auto& kForm>
absl::Status Proximal(KernelContext& ctx) {
  constexpr size_t kStates = kForm.states.size();
  const Attrs& attrs = ctx.attrs<Attrs>();
  const M rate = LearningRate<M>(ctx);
  return RunUpdate<M, kForm>(ctx, Rule<M, kStates>{rate, rate * attrs.l1, 1 + rate * attrs.l2});
}

template <const auto& kForm>
OpDef ProximalDef(absl::string_view type) {
  OpDef def =
      UpdateDef<kForm>(type, UpdateKernels(Proximal<float, kForm>, Proximal<double, kForm>));
  def.parse = ParseAttrs<Attrs, ReadAttrs>;
  return def;
}

INTERP_REGISTER_OP(ProximalDef<kProximalGd>("proximal_gd"));
INTERP_REGISTER_OP(ProximalDef<kProximalAdagrad>("proximal_adagrad"));

}  // namespace
}  // namespace interp::optimizer
