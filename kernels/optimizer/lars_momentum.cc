// lars_momentum: with P and G the norms of parameter and gradient, L = l coeff P / (G + wd P + eps)
// where wd, P and G are positive, else l; v = mu v + L (g + wd p); p -= v. Slots are lists.
#include "kernels/optimizer/definition.h"
#include "kernels/optimizer/norm.h"
#include "kernels/optimizer/update_attrs.h"

namespace interp::optimizer {
namespace {

constexpr Form<1> kLars = {.states = {{{"Velocity", "VelocityOut"}}}, .lists = true};

LarsAttrs ReadAttrs(AttrReader& reader) {
  LarsAttrs attrs{.mu = reader.Float("mu", 0),
                  .coefficient = reader.Float("lars_coeff", 0.001f),
                  .epsilon = reader.Float("epsilon", 0),
                  .rescale = reader.Float("rescale_grad", 1)};
  // Before Paddle 2.2 it was one number.
  const Attr* decay = reader.op().FindAttr("lars_weight_decay");
  if (decay != nullptr && std::holds_alternative<float>(decay->value)) {
    attrs.decay = {reader.Float("lars_weight_decay", 0.0005f)};
  } else {
    attrs.decay = reader.Floats("lars_weight_decay", {0.0005f});
  }
  return attrs;
}

absl::Status InferLars(InferContext& ctx) {
  const size_t decays = ctx.attrs<LarsAttrs>().decay.size();
  const size_t params = ctx.inputs(kParam).size();
  if (decays != 1 && decays != params) {
    return InvalidArgument("attribute 'lars_weight_decay' has ", decays, " values, expected 1 or ",
                           params);
  }
  return InferUpdate<kLars>(ctx);
}

template <typename M>
struct Rule {
  M rate, mu, decay, rescale;
  M operator()(M p, M g, std::array<M, 1>& velocity) const {
    velocity[0] = mu * velocity[0] + rate * (rescale * g + decay * p);
    return p - velocity[0];
  }
};

template <typename M>
M LocalRate(const KernelContext& ctx, size_t i, M decay, const Tensor& param) {
  const auto& attrs = ctx.attrs<LarsAttrs>();
  const M rate = LearningRate<M>(ctx, i);
  if (!(decay > 0)) return rate;
  const M p = static_cast<M>(Norm<M>(ctx.num_threads(), param));
  const M g = static_cast<M>(Norm<M>(ctx.num_threads(), *ctx.inputs(kGrad)[i])) *
              std::abs(static_cast<M>(attrs.rescale));
  if (!(p > 0) || !(g > 0)) return rate;
  return rate * static_cast<M>(attrs.coefficient) * p / (g + decay * p + attrs.epsilon);
}

template <typename M>
absl::Status LarsMomentum(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<LarsAttrs>();
  std::vector<Task<M, 1, Rule<M>>> tasks;
  for (size_t i = 0; i < ctx.inputs(kParam).size(); ++i) {
    INTERP_ASSIGN_OR_RETURN(auto update, (CollectUpdate<M, kLars>(ctx, i)));
    const M decay = attrs.decay[attrs.decay.size() == 1 ? 0 : i];
    const M rate = LocalRate<M>(ctx, i, decay, *update.exact().in);
    tasks.push_back({std::move(update), {rate, attrs.mu, decay, attrs.rescale}});
  }
  RunUpdates(ctx.num_threads(), tasks);
  return absl::OkStatus();
}

OpDef LarsDef() {
  OpDef def =
      UpdateDef<kLars>("lars_momentum", UpdateKernels(LarsMomentum<float>, LarsMomentum<double>));
  def.infer = InferLars;
  def.parse = ParseAttrs<LarsAttrs, ReadAttrs>;
  return def;
}

INTERP_REGISTER_OP(LarsDef());

}  // namespace
}  // namespace interp::optimizer
