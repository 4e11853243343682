// dpsgd: p -= l (g / max(1, |g| / clip) + noise / batch_size). The noise is one normal number of
// deviation sigma for all elements, drawn anew in every run.
#include <algorithm>

#include "core/resource/distributions.h"
#include "kernels/optimizer/definition.h"
#include "kernels/optimizer/norm.h"

namespace interp::optimizer {
namespace {

constexpr Form<0> kDpsgd = {};

struct Attrs {
  float clip, batch_size, sigma;
};

Attrs ReadAttrs(AttrReader& reader) {
  return {reader.Float("clip", 10), reader.Float("batch_size", 16), reader.Float("sigma", 1)};
}

template <typename M>
struct Rule {
  M rate, divisor, noise;
  M operator()(M p, M g, std::array<M, 0>&) const { return p - rate * (g / divisor + noise); }
};

template <typename M>
absl::Status Dpsgd(KernelContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const double norm = Norm<M>(ctx.num_threads(), ctx.input(kGrad));
  const M divisor = static_cast<M>(std::max(1.0, norm / attrs.clip));
  const PhiloxBlock bits = ctx.random().Block(0);
  const double normal = NormalPair<double>(Bits64(bits, 0), Bits64(bits, 1)).first;
  const M noise = static_cast<M>(normal * attrs.sigma / attrs.batch_size);
  return RunUpdate<M, kDpsgd>(ctx, Rule<M>{LearningRate<M>(ctx), divisor, noise});
}

OpDef DpsgdDef() {
  OpDef def = UpdateDef<kDpsgd>("dpsgd", UpdateKernels(Dpsgd<float>, Dpsgd<double>));
  def.parse = ParseAttrs<Attrs, ReadAttrs>;
  def.random = true;
  return def;
}

INTERP_REGISTER_OP(DpsgdDef());

}  // namespace
}  // namespace interp::optimizer
