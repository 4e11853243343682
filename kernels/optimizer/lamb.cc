// lamb: the moments of adam; r = (m1 / (1 - B1)) / (sqrt(m2 / (1 - B2)) + epsilon) + wd p;
// p -= l q r, where q is the norm of p over that of r. It is 1 where one of them is 0, and without
// weight decay unless `always_adapt`.
//
// Two passes over memory: the moments with the norms, then the parameter from r computed anew.
#include <cmath>

#include "kernels/optimizer/adam.h"
#include "kernels/optimizer/norm.h"
#include "kernels/optimizer/update_attrs.h"

namespace interp::optimizer {
namespace {

constexpr Form<2, 2> kLamb = {.states = kMoments, .scalars = kBetaPows, .grad_flags = kMayBeRows};
constexpr int kBeta1PowOut = kLamb.kFirstScalarOut;
constexpr int kBeta2PowOut = kBeta1PowOut + 1;
constexpr int kSkipUpdate = kLamb.kFirstOther;

LambAttrs ReadAttrs(AttrReader& reader) {
  return {.beta1 = reader.Float("beta1", 0.9f),
          .beta2 = reader.Float("beta2", 0.999f),
          .epsilon = reader.Float("epsilon", 1e-6f),
          .decay = reader.Float("weight_decay", 0),
          .always_adapt = reader.Bool("always_adapt", false)};
}

// What to subtract from the parameter, but for the rate.
template <typename M>
struct Direction {
  M unbias1, unbias2, epsilon, decay;
  M operator()(M p, M moment1, M moment2) const {
    return moment1 * unbias1 / (std::sqrt(moment2 * unbias2) + epsilon) + decay * p;
  }
};

// Gives the direction instead of the new parameter.
template <typename M>
struct MomentsRule {
  M beta1, beta2;
  Direction<M> direction;
  M operator()(M p, M g, std::array<M, 2>& moments) const {
    moments[0] = beta1 * moments[0] + (1 - beta1) * g;
    moments[1] = beta2 * moments[1] + (1 - beta2) * g * g;
    return direction(p, moments[0], moments[1]);
  }
};

struct Norms {
  double param = 0;
  double direction = 0;
};

template <typename M>
Norms UpdateMoments(int num_threads, const Update<M, 2>& update, const MomentsRule<M>& rule) {
  std::vector<Norms> squares(update.gradient.num_chunks());
  ParallelFor(num_threads, static_cast<int64_t>(squares.size()), GrainFor(kChunk),
              [&](int64_t begin, int64_t end) {
                M gradient[kChunk], param[kChunk], direction[kChunk];
                for (int64_t c = begin; c < end; ++c) {
                  const GradientChunk<M> g = update.gradient.Chunk(c, gradient);
                  const M* p = LoadChunk(*update.exact().in, g.at, g.size, param);
                  ApplyToStates(update, rule, g, p, direction);
                  squares[c] = {SumOfSquares(p, g.size), SumOfSquares(direction, g.size)};
                }
              });
  Norms total;
  for (const Norms& part : squares) {
    total.param += part.param;
    total.direction += part.direction;
  }
  return {std::sqrt(total.param), std::sqrt(total.direction)};
}

template <typename M>
void Step(const Direction<M>& direction_of_caller, M rate, int64_t n, const M* p,
          const std::array<const M*, 2>& moments, M* out) {
  const Direction<M> direction = direction_of_caller;
  const M* const moment1 = moments[0];
  const M* const moment2 = moments[1];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = p[i] - rate * direction(p[i], moment1[i], moment2[i]);
}

template <typename M>
void UpdateParam(int num_threads, const Update<M, 2>& update, const Direction<M>& direction,
                 M rate) {
  const Operand& exact = update.exact();
  const int64_t n = exact.in->numel();
  ParallelFor(num_threads, NumChunks(n), GrainFor(kChunk), [&](int64_t begin, int64_t end) {
    M buffers[3][kChunk];
    for (int64_t c = begin; c < end; ++c) {
      const int64_t at = c * kChunk;
      const int64_t size = std::min(kChunk, n - at);
      M* const out = TargetOf(*exact.out, at, buffers[0]);
      Step(direction, rate, size, LoadChunk(*exact.in, at, size, buffers[0]),
           {LoadChunk(*update.states[0].out, at, size, buffers[1]),
            LoadChunk(*update.states[1].out, at, size, buffers[2])},
           out);
      StoreParam(update, out, at, size);
    }
  });
}

template <typename M>
absl::Status RunLamb(KernelContext& ctx) {
  const LambAttrs& attrs = ctx.attrs<LambAttrs>();
  INTERP_ASSIGN_OR_RETURN(const auto update, (CollectUpdate<M, kLamb>(ctx)));
  const Direction<M> direction{1 / (1 - ScalarOf<M>(ctx.input(InputOf(kBeta1PowOut)))),
                               1 / (1 - ScalarOf<M>(ctx.input(InputOf(kBeta2PowOut)))),
                               attrs.epsilon, attrs.decay};
  const Norms norms =
      UpdateMoments<M>(ctx.num_threads(), update, {attrs.beta1, attrs.beta2, direction});
  M rate = LearningRate<M>(ctx);
  const bool adapts = attrs.decay > 0 || attrs.always_adapt;
  if (adapts && norms.param > 0 && norms.direction > 0) {
    rate *= static_cast<M>(norms.param / norms.direction);
  }
  UpdateParam(ctx.num_threads(), update, direction, rate);
  return absl::OkStatus();
}

template <typename M>
absl::Status Lamb(KernelContext& ctx) {
  const LambAttrs& attrs = ctx.attrs<LambAttrs>();
  const bool skip = Skips(ctx, kSkipUpdate);
  if (skip) {
    INTERP_ASSIGN_OR_RETURN(const auto update, (CollectUpdate<M, kLamb>(ctx)));
    KeepValues(update);
  } else {
    INTERP_RETURN_IF_ERROR(RunLamb<M>(ctx));
  }
  AdvancePow<M>(ctx, kBeta1PowOut, 0, skip ? 1 : attrs.beta1);
  AdvancePow<M>(ctx, kBeta2PowOut, 0, skip ? 1 : attrs.beta2);
  return absl::OkStatus();
}

absl::Status InferLamb(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSkipUpdate(ctx, kSkipUpdate));
  return InferUpdate<kLamb>(ctx);
}

OpDef LambDef() {
  OpDef def = UpdateDef<kLamb>("lamb", UpdateKernels(Lamb<float>, Lamb<double>));
  def.inputs.push_back({"SkipUpdate", kAnyDType | kOptional});
  def.infer = InferLamb;
  def.parse = ParseAttrs<LambAttrs, ReadAttrs>;
  return def;
}

INTERP_REGISTER_OP(LambDef());

}  // namespace
}  // namespace interp::optimizer
