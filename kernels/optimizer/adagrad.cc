// adagrad: m += g^2; p -= l g / (sqrt(m) + epsilon). Of selected rows, those that are listed.
// decayed_adagrad: the same with m = decay m + (1 - decay) g^2.
#include <cmath>

#include "kernels/optimizer/definition.h"
#include "kernels/optimizer/update_attrs.h"

namespace interp::optimizer {
namespace {

constexpr Form<1> kAdagrad = {.states = {{{"Moment", "MomentOut"}}}, .grad_flags = kMayBeRows};
constexpr Form<1> kDecayedAdagrad = {.states = kAdagrad.states};

AdagradAttrs ReadAdagrad(AttrReader& reader) { return {.epsilon = reader.Float("epsilon", 1e-6f)}; }
AdagradAttrs ReadDecayedAdagrad(AttrReader& reader) {
  const float decay = reader.Float("decay", 0.95f);
  return {.keep = decay, .add = 1 - decay, .epsilon = reader.Float("epsilon", 1e-6f)};
}

template <typename M>
struct Rule {
  M rate, keep, add, epsilon;
  M operator()(M p, M g, std::array<M, 1>& moment) const {
    moment[0] = keep * moment[0] + add * g * g;
    return p - rate * g / (std::sqrt(moment[0]) + epsilon);
  }
};

template <typename M, const auto& kForm>
absl::Status Adagrad(KernelContext& ctx) {
  const AdagradAttrs& attrs = ctx.attrs<AdagradAttrs>();
  const Rule<M> rule{LearningRate<M>(ctx), attrs.keep, attrs.add, attrs.epsilon};
  return RunUpdate<M, kForm>(ctx, rule, MissingRows::kUntouched);
}

template <const auto& kForm>
OpDef AdagradDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  OpDef def = UpdateDef<kForm>(type, UpdateKernels(Adagrad<float, kForm>, Adagrad<double, kForm>));
  def.parse = parse;
  return def;
}

INTERP_REGISTER_OP(AdagradDef<kAdagrad>("adagrad", ParseAttrs<AdagradAttrs, ReadAdagrad>));
INTERP_REGISTER_OP(AdagradDef<kDecayedAdagrad>("decayed_adagrad",
                                               ParseAttrs<AdagradAttrs, ReadDecayedAdagrad>));

}  // namespace
}  // namespace interp::optimizer
