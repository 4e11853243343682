// rmsprop: s = decay s + (1 - decay) g^2; M = momentum M + l g / sqrt(s + epsilon); p -= M.
// Centered: a = decay a + (1 - decay) g, and s - a^2 in place of s below the root.
#include <cmath>

#include "kernels/optimizer/definition.h"
#include "kernels/optimizer/update_attrs.h"

namespace interp::optimizer {
namespace {

constexpr Form<3> kRmsprop = {
    .states = {{{"MeanSquare", "MeanSquareOut"},
                {"Moment", "MomentOut"},
                {"MeanGrad", "MeanGradOut", kOptional, kOptional}}},
    .grad_flags = kMayBeRows,
};
constexpr int kMeanGradOut = kFirstStateOut + 2;

RmspropAttrs ReadAttrs(AttrReader& reader) {
  return {.epsilon = reader.Float("epsilon", 1e-10f),
          .decay = reader.Float("decay", 0.9f),
          .momentum = reader.Float("momentum", 0.0f),
          .centered = reader.Bool("centered", false)};
}

template <typename M, size_t kStates>
struct Rule {
  M rate, epsilon, decay, momentum;
  M operator()(M p, M g, std::array<M, kStates>& state) const {
    state[0] = decay * state[0] + (1 - decay) * g * g;
    M variance = state[0];
    if constexpr (kStates == 3) {
      state[2] = decay * state[2] + (1 - decay) * g;
      variance -= state[2] * state[2];
    }
    state[1] = momentum * state[1] + rate * g / std::sqrt(variance + epsilon);
    return p - state[1];
  }
};

absl::Status InferRmsprop(InferContext& ctx) {
  if (ctx.attrs<RmspropAttrs>().centered && !ctx.has_output(kMeanGradOut)) {
    return InvalidArgument("'MeanGradOut' is missing, which 'centered' needs");
  }
  return InferUpdate<kRmsprop>(ctx);
}

template <typename M>
absl::Status Rmsprop(KernelContext& ctx) {
  const RmspropAttrs& attrs = ctx.attrs<RmspropAttrs>();
  const M rate = LearningRate<M>(ctx);
  if (attrs.centered) {
    return RunUpdate<M, kRmsprop, 3>(ctx,
                                     Rule<M, 3>{rate, attrs.epsilon, attrs.decay, attrs.momentum});
  }
  if (Tensor* kept = ctx.optional_output(kMeanGradOut)) {
    CopyUnlessShared(ctx.input(InputOf(kMeanGradOut)), *kept);
  }
  return RunUpdate<M, kRmsprop, 2>(ctx,
                                   Rule<M, 2>{rate, attrs.epsilon, attrs.decay, attrs.momentum});
}

OpDef RmspropDef() {
  OpDef def = UpdateDef<kRmsprop>("rmsprop", UpdateKernels(Rmsprop<float>, Rmsprop<double>));
  def.infer = InferRmsprop;
  def.parse = ParseAttrs<RmspropAttrs, ReadAttrs>;
  return def;
}

INTERP_REGISTER_OP(RmspropDef());

}  // namespace
}  // namespace interp::optimizer
