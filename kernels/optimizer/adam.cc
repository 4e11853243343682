// adam, adamw. As in Paddle's host kernels, adamw's lr_ratio scales the decay alone, and a step by
// selected rows that updates B1 and B2 in place already sees the updated ones.
#include "kernels/optimizer/adam.h"

namespace interp::optimizer {
namespace {

constexpr Form<2, 2> kAdam = {.states = kMoments, .scalars = kBetaPows, .grad_flags = kMayBeRows};
constexpr int kBeta1Pow = InputOf(kAdam.kFirstScalarOut);
constexpr int kBeta2Pow = kBeta1Pow + 1;
constexpr int kBeta1Tensor = kAdam.kFirstOther;
constexpr int kBeta2Tensor = kBeta1Tensor + 1;
constexpr int kEpsilonTensor = kBeta1Tensor + 2;
constexpr int kSkipUpdate = kBeta1Tensor + 3;

AdamAttrs ReadAdamW(AttrReader& reader) {
  AdamAttrs attrs = ReadAdam(reader);
  const float coefficient = reader.Float("coeff", 0.01f) * reader.Float("lr_ratio", 1.0f);
  if (reader.Bool("with_decay", false)) attrs.decay = coefficient;
  return attrs;
}

absl::Status InferAdam(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckScalar(ctx, kBeta1Tensor, "Beta1Tensor"));
  INTERP_RETURN_IF_ERROR(CheckScalar(ctx, kBeta2Tensor, "Beta2Tensor"));
  INTERP_RETURN_IF_ERROR(CheckScalar(ctx, kEpsilonTensor, "EpsilonTensor"));
  INTERP_RETURN_IF_ERROR(CheckSkipUpdate(ctx, kSkipUpdate));
  return InferUpdate<kAdam>(ctx);
}

template <typename M>
AdamStep<M> StepOf(const KernelContext& ctx) {
  const AdamAttrs& attrs = ctx.attrs<AdamAttrs>();
  const auto value = [&](int slot, float attr) {
    return ctx.has_input(slot) ? ScalarOf<M>(ctx.input(slot)) : static_cast<M>(attr);
  };
  return {.rate = LearningRate<M>(ctx),
          .beta1 = value(kBeta1Tensor, attrs.beta1),
          .beta2 = value(kBeta2Tensor, attrs.beta2),
          .epsilon = value(kEpsilonTensor, attrs.epsilon),
          .pow1 = ScalarOf<M>(ctx.input(kBeta1Pow)),
          .pow2 = ScalarOf<M>(ctx.input(kBeta2Pow)),
          .decay = static_cast<M>(attrs.decay)};
}

template <typename M>
void AdvancePows(const KernelContext& ctx, M beta1, M beta2) {
  AdvancePow<M>(ctx, kAdam.kFirstScalarOut, 0, beta1);
  AdvancePow<M>(ctx, kAdam.kFirstScalarOut + 1, 0, beta2);
}

// Updates B1 and B2, unless others do.
template <typename M>
void AdvancePows(const KernelContext& ctx, const AdamStep<M>& step) {
  const bool keeps = ctx.attrs<AdamAttrs>().keep_pows;
  AdvancePows<M>(ctx, keeps ? 1 : step.beta1, keeps ? 1 : step.beta2);
}

template <typename M>
struct DecayRule {
  M keep;
  M operator()(M p, M, std::array<M, 0>&) const { return p * keep; }
};

// Only listed rows are updated, but all decay.
template <typename M>
absl::Status RunLazily(KernelContext& ctx, AdamStep<M> step) {
  INTERP_ASSIGN_OR_RETURN(auto update, (CollectUpdate<M, kAdam>(ctx, 0, MissingRows::kUntouched)));
  if (step.decay != 0) {
    const DecayRule<M> decay{1 - step.rate * step.decay};
    INTERP_RETURN_IF_ERROR((RunUpdate<M, kAdam, 0>(ctx, decay)));
    update.param.in = update.param.out;
    update.master.in = update.master.out;
    step.decay = 0;
  }
  RunUpdates<M, 2, AdamRule<M>>(ctx.num_threads(), {{std::move(update), AdamRule<M>(step)}});
  return absl::OkStatus();
}

// As Paddle on the host: rows that are not listed have epsilon itself in the denominator.
template <typename M>
absl::Status RunByRows(KernelContext& ctx, const AdamStep<M>& step) {
  const AdamRule<M> listed(step);
  INTERP_RETURN_IF_ERROR((RunUpdate<M, kAdam>(ctx, listed, MissingRows::kUntouched)));
  AdamRule<M> others = listed;
  others.epsilon = step.epsilon;
  INTERP_ASSIGN_OR_RETURN(auto update, (CollectUpdate<M, kAdam>(ctx, 0, MissingRows::kAlone)));
  update.param.in = update.param.out;
  update.master.in = update.master.out;
  for (Operand& state : update.states) state.in = state.out;
  RunUpdates<M, 2, AdamRule<M>>(ctx.num_threads(), {{std::move(update), others}});
  return absl::OkStatus();
}

template <typename M>
absl::Status Adam(KernelContext& ctx) {
  const AdamAttrs& attrs = ctx.attrs<AdamAttrs>();
  if (Skips(ctx, kSkipUpdate)) {
    INTERP_ASSIGN_OR_RETURN(const auto update, (CollectUpdate<M, kAdam>(ctx)));
    KeepValues(update);
    AdvancePows<M>(ctx, 1, 1);
    return absl::OkStatus();
  }
  if (InputIsRows(ctx, kGrad)) {
    AdvancePows(ctx, StepOf<M>(ctx));
    const AdamStep<M> step = StepOf<M>(ctx);
    return attrs.lazy ? RunLazily<M>(ctx, step) : RunByRows<M>(ctx, step);
  }
  const AdamStep<M> step = StepOf<M>(ctx);
  INTERP_RETURN_IF_ERROR((RunUpdate<M, kAdam>(ctx, AdamRule<M>(step))));
  AdvancePows(ctx, step);
  return absl::OkStatus();
}

OpDef AdamDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  OpDef def = UpdateDef<kAdam>(type, UpdateKernels(Adam<float>, Adam<double>));
  for (const absl::string_view name : {"Beta1Tensor", "Beta2Tensor", "EpsilonTensor"}) {
    def.inputs.push_back({name, kAnyDType | kOptional});
  }
  def.inputs.push_back({"SkipUpdate", kAnyDType | kOptional});
  def.infer = InferAdam;
  def.parse = parse;
  return def;
}

INTERP_REGISTER_OP(AdamDef("adam", ParseAttrs<AdamAttrs, ReadAdam>));
INTERP_REGISTER_OP(AdamDef("adamw", ParseAttrs<AdamAttrs, ReadAdamW>));

}  // namespace
}  // namespace interp::optimizer
