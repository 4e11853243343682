// adadelta: G = rho G + (1 - rho) g^2; d = -sqrt(U + epsilon) / sqrt(G + epsilon) g;
// U = rho U + (1 - rho) d^2; p += l d. Old programs have no learning rate: l is 1.
#include <cmath>

#include "kernels/optimizer/definition.h"
#include "kernels/optimizer/update_attrs.h"

namespace interp::optimizer {
namespace {

constexpr Form<2> kAdadelta = {
    .states = {{{"AvgSquaredGrad", "AvgSquaredGradOut"},
                {"AvgSquaredUpdate", "AvgSquaredUpdateOut"}}},
};

AdadeltaAttrs ReadAttrs(AttrReader& reader) {
  return {reader.Float("rho", 0.95f), reader.Float("epsilon", 1e-6f)};
}

template <typename M>
struct Rule {
  M rate, rho, epsilon;
  M operator()(M p, M g, std::array<M, 2>& mean) const {
    mean[0] = rho * mean[0] + (1 - rho) * g * g;
    const M step = -(std::sqrt(mean[1] + epsilon) / std::sqrt(mean[0] + epsilon) * g);
    mean[1] = rho * mean[1] + (1 - rho) * step * step;
    return p + rate * step;
  }
};

template <typename M>
absl::Status Adadelta(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<AdadeltaAttrs>();
  const M rate = ctx.has_input(kLearningRate) ? LearningRate<M>(ctx) : M{1};
  return RunUpdate<M, kAdadelta>(ctx, Rule<M>{rate, attrs.rho, attrs.epsilon});
}

OpDef AdadeltaDef() {
  OpDef def = UpdateDef<kAdadelta>("adadelta", UpdateKernels(Adadelta<float>, Adadelta<double>));
  def.inputs[kLearningRate].flags |= kOptional;
  def.parse = ParseAttrs<AdadeltaAttrs, ReadAttrs>;
  return def;
}

INTERP_REGISTER_OP(AdadeltaDef());

}  // namespace
}  // namespace interp::optimizer
