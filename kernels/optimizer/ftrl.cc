// ftrl, with s^ standing for s to the power of -lr_power:
//
//   n = s + g^2; z += g - (n^ - s^) / l p; s = n
//   p = |z| > l1 ? (l1 sign(z) - z) / (n^ / l + 2 l2) : 0
//
// As in Paddle, l1 and l2 are 1e-10 more than they say. Of selected rows, those that are listed.
#include <cmath>

#include "kernels/optimizer/definition.h"

namespace interp::optimizer {
namespace {

constexpr Form<2> kFtrl = {
    .states = {{{"SquaredAccumulator", "SquaredAccumOut"},
                {"LinearAccumulator", "LinearAccumOut"}}},
    .grad_flags = kMayBeRows,
};

struct Attrs {
  float l1, l2, power;
};

Attrs ReadAttrs(AttrReader& reader) {
  return {reader.Float("l1", 0), reader.Float("l2", 0), reader.Float("lr_power", -0.5f)};
}

template <typename M>
struct SquareRoot {
  M operator()(M x) const { return std::sqrt(x); }
};
template <typename M>
struct Power {
  M exponent;
  M operator()(M x) const { return std::pow(x, exponent); }
};

template <typename M, typename Raise>
struct Rule {
  M rate, l1, l2;
  Raise raise;
  M operator()(M p, M g, std::array<M, 2>& state) const {
    const M sum = state[0] + g * g;
    const M raised = raise(sum);
    const M z = state[1] + g - (raised - raise(state[0])) / rate * p;
    state[0] = sum;
    state[1] = z;
    const M updated = ((z < 0 ? -l1 : l1) - z) / (raised / rate + 2 * l2);
    return std::abs(z) > l1 ? updated : M{0};
  }
};

template <typename M>
absl::Status Ftrl(KernelContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const M rate = LearningRate<M>(ctx);
  const M l1 = static_cast<M>(attrs.l1) + static_cast<M>(1e-10);
  const M l2 = static_cast<M>(attrs.l2) + static_cast<M>(1e-10);
  if (attrs.power == -0.5f) {
    return RunUpdate<M, kFtrl>(ctx, Rule<M, SquareRoot<M>>{rate, l1, l2, {}},
                               MissingRows::kUntouched);
  }
  return RunUpdate<M, kFtrl>(ctx, Rule<M, Power<M>>{rate, l1, l2, {-attrs.power}},
                             MissingRows::kUntouched);
}

OpDef FtrlDef() {
  OpDef def = UpdateDef<kFtrl>("ftrl", UpdateKernels(Ftrl<float>, Ftrl<double>));
  def.parse = ParseAttrs<Attrs, ReadAttrs>;
  return def;
}

INTERP_REGISTER_OP(FtrlDef());

}  // namespace
}  // namespace interp::optimizer
