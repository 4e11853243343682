// merged_adam: adam on lists of parameters, all of them in one go.
#include "kernels/optimizer/adam.h"

namespace interp::optimizer {
namespace {

constexpr Form<2, 2> kMerged = {.states = kMoments, .scalars = kBetaPows, .lists = true};
constexpr int kBeta1PowOut = kMerged.kFirstScalarOut;
constexpr int kBeta2PowOut = kBeta1PowOut + 1;

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
                           .decay = 0};
    tasks.push_back({std::move(update), AdamRule<M>(step)});
  }
  RunUpdates(ctx.num_threads(), tasks);
  for (size_t i = 0; i < params; ++i) {
    AdvancePow<M>(ctx, kBeta1PowOut, i, attrs.keep_pows ? 1 : attrs.beta1);
    AdvancePow<M>(ctx, kBeta2PowOut, i, attrs.keep_pows ? 1 : attrs.beta2);
  }
  return absl::OkStatus();
}

OpDef MergedDef() {
  OpDef def =
      UpdateDef<kMerged>("merged_adam", UpdateKernels(MergedAdam<float>, MergedAdam<double>));
  def.parse = ParseAttrs<AdamAttrs, ReadAdam>;
  return def;
}

INTERP_REGISTER_OP(MergedDef());

}  // namespace
}  // namespace interp::optimizer
