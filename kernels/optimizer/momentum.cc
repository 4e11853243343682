// momentum. As in Paddle's host kernel, rescale_grad scales gradients that are selected rows alone.
#include "kernels/optimizer/momentum.h"

namespace interp::optimizer {
namespace {

constexpr Form<1> kMomentum = {.states = {{{"Velocity", "VelocityOut"}}}, .grad_flags = kMayBeRows};

OneMomentumAttrs ReadAttrs(AttrReader& reader) {
  OneMomentumAttrs attrs{.momentum = ReadMomentum(reader)};
  attrs.decay =
      DecayOf(reader.String("regularization_method", ""), reader.Float("regularization_coeff", 0));
  attrs.rescale_rows = reader.Float("rescale_grad", 1);
  return attrs;
}

template <typename M>
absl::Status Momentum(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<OneMomentumAttrs>();
  const M rate = LearningRate<M>(ctx);
  const M mu = attrs.momentum.mu;
  const M decay = attrs.decay;
  const M rescale = InputIsRows(ctx, kGrad) ? attrs.rescale_rows : 1;
  if (attrs.momentum.nesterov) {
    return RunUpdate<M, kMomentum>(ctx, MomentumRule<M, true>{rate, mu, decay, rescale});
  }
  return RunUpdate<M, kMomentum>(ctx, MomentumRule<M, false>{rate, mu, decay, rescale});
}

OpDef MomentumDef() {
  OpDef def = UpdateDef<kMomentum>("momentum", UpdateKernels(Momentum<float>, Momentum<double>));
  def.parse = ParseAttrs<OneMomentumAttrs, ReadAttrs>;
  return def;
}

INTERP_REGISTER_OP(MomentumDef());

}  // namespace
}  // namespace interp::optimizer
