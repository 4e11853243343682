// merged_momentum: momentum on lists of parameters, all of them in one go.
#include "kernels/optimizer/momentum.h"

namespace interp::optimizer {
namespace {

constexpr Form<1> kMerged = {.states = {{{"Velocity", "VelocityOut"}}}, .lists = true};

MergedMomentumAttrs ReadAttrs(AttrReader& reader) {
  MergedMomentumAttrs attrs{.momentum = ReadMomentum(reader)};
  const std::vector<std::string> methods = reader.Strings("regularization_method");
  const std::vector<float> coefficients = reader.Floats("regularization_coeff");
  if (methods.empty()) return attrs;
  if (methods.size() != coefficients.size()) {
    reader.Fail(absl::StrCat("attribute 'regularization_coeff' has ", coefficients.size(),
                             " values, expected as many as 'regularization_method', ",
                             methods.size()));
    return attrs;
  }
  for (size_t i = 0; i < methods.size(); ++i) {
    attrs.decay.push_back(DecayOf(methods[i], coefficients[i]));
  }
  return attrs;
}

absl::Status InferMerged(InferContext& ctx) {
  const size_t decays = ctx.attrs<MergedMomentumAttrs>().decay.size();
  const size_t params = ctx.inputs(kParam).size();
  if (decays != 0 && decays != params) {
    return InvalidArgument("attribute 'regularization_method' has ", decays,
                           " values, expected none or ", params);
  }
  return InferUpdate<kMerged>(ctx);
}

template <typename M, bool kNesterov>
absl::Status RunAll(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<MergedMomentumAttrs>();
  std::vector<Task<M, 1, MomentumRule<M, kNesterov>>> tasks;
  for (size_t i = 0; i < ctx.inputs(kParam).size(); ++i) {
    INTERP_ASSIGN_OR_RETURN(auto update, (CollectUpdate<M, kMerged>(ctx, i)));
    const M decay = attrs.decay.empty() ? 0.0f : attrs.decay[i];
    tasks.push_back({std::move(update), {LearningRate<M>(ctx, i), attrs.momentum.mu, decay}});
  }
  RunUpdates(ctx.num_threads(), tasks);
  return absl::OkStatus();
}

template <typename M>
absl::Status MergedMomentum(KernelContext& ctx) {
  return ctx.attrs<MergedMomentumAttrs>().momentum.nesterov ? RunAll<M, true>(ctx)
                                                            : RunAll<M, false>(ctx);
}

OpDef MergedDef() {
  OpDef def = UpdateDef<kMerged>("merged_momentum",
                                 UpdateKernels(MergedMomentum<float>, MergedMomentum<double>));
  def.infer = InferMerged;
  def.parse = ParseAttrs<MergedMomentumAttrs, ReadAttrs>;
  return def;
}

INTERP_REGISTER_OP(MergedDef());

}  // namespace
}  // namespace interp::optimizer
