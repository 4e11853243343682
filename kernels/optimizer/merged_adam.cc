// merged_adam, fused_adam: adam on lists of parameters, all of them in one go. fused_adam may decay
// as adamw does, and a SkipUpdate leaves everything as it is.
#include "kernels/optimizer/adam.h"

namespace interp::optimizer {
namespace {

constexpr Form<2, 2> kMerged = {.states = kMoments, .scalars = kBetaPows, .lists = true};
constexpr int kBeta1PowOut = kMerged.kFirstScalarOut;
constexpr int kBeta2PowOut = kBeta1PowOut + 1;
constexpr int kSkipUpdate = kMerged.kFirstOther;

AdamAttrs ReadFusedAdam(AttrReader& reader) {
  AdamAttrs attrs = ReadAdam(reader);
  const float decay = reader.Float("weight_decay", 0);
  if (reader.Bool("use_adamw", false)) attrs.decay = decay;
  return attrs;
}

absl::Status InferFusedAdam(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSkipUpdate(ctx, kSkipUpdate));
  return InferUpdate<kMerged>(ctx);
}

template <typename M>
absl::Status MergedAdam(KernelContext& ctx) {
  const AdamAttrs& attrs = ctx.attrs<AdamAttrs>();
  const size_t params = ctx.inputs(kParam).size();
  std::vector<Task<M, 2, AdamRule<M>>> tasks;
  for (size_t i = 0; i < params; ++i) {
    INTERP_ASSIGN_OR_RETURN(auto update, (CollectUpdate<M, kMerged>(ctx, i)));
    const AdamStep<M> step{.rate = LearningRate<M>(ctx, i),
                           .beta1 = attrs.beta1,
                           .beta2 = attrs.beta2,
                           .epsilon = attrs.epsilon,
                           .pow1 = ScalarOf<M>(*ctx.inputs(InputOf(kBeta1PowOut))[i]),
                           .pow2 = ScalarOf<M>(*ctx.inputs(InputOf(kBeta2PowOut))[i]),
                           .decay = attrs.decay};
    tasks.push_back({std::move(update), AdamRule<M>(step)});
  }
  RunUpdates(ctx.num_threads(), tasks);
  for (size_t i = 0; i < params; ++i) {
    AdvancePow<M>(ctx, kBeta1PowOut, i, attrs.keep_pows ? 1 : attrs.beta1);
    AdvancePow<M>(ctx, kBeta2PowOut, i, attrs.keep_pows ? 1 : attrs.beta2);
  }
  return absl::OkStatus();
}

template <typename M>
absl::Status FusedAdam(KernelContext& ctx) {
  if (!Skips(ctx, kSkipUpdate)) return MergedAdam<M>(ctx);
  for (size_t i = 0; i < ctx.inputs(kParam).size(); ++i) {
    INTERP_ASSIGN_OR_RETURN(const auto update, (CollectUpdate<M, kMerged>(ctx, i)));
    KeepValues(update);
    AdvancePow<M>(ctx, kBeta1PowOut, i, 1);
    AdvancePow<M>(ctx, kBeta2PowOut, i, 1);
  }
  return absl::OkStatus();
}

OpDef MergedDef() {
  OpDef def =
      UpdateDef<kMerged>("merged_adam", UpdateKernels(MergedAdam<float>, MergedAdam<double>));
  def.parse = ParseAttrs<AdamAttrs, ReadAdam>;
  return def;
}

OpDef FusedDef() {
  OpDef def = UpdateDef<kMerged>("fused_adam", UpdateKernels(FusedAdam<float>, FusedAdam<double>));
  constexpr std::array<absl::string_view, 8> kInputs = {"Params",    "Grads",       "LearningRate",
                                                        "Moments1",  "Moments2",    "Beta1Pows",
                                                        "Beta2Pows", "MasterParams"};
  constexpr std::array<absl::string_view, 6> kOutputs = {
      "ParamsOut", "Moments1Out", "Moments2Out", "Beta1PowsOut", "Beta2PowsOut", "MasterParamsOut"};
  for (size_t i = 0; i < kInputs.size(); ++i) def.inputs[i].name = kInputs[i];
  for (size_t i = 0; i < kOutputs.size(); ++i) def.outputs[i].name = kOutputs[i];
  def.inputs.push_back({"SkipUpdate", kAnyDType | kOptional});
  def.infer = InferFusedAdam;
  def.parse = ParseAttrs<AdamAttrs, ReadFusedAdam>;
  return def;
}

INTERP_REGISTER_OP(MergedDef());
INTERP_REGISTER_OP(FusedDef());

}  // namespace
}  // namespace interp::optimizer
