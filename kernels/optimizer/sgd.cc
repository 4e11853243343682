// sgd: p -= l g. Of selected rows, those that are listed.
#include "kernels/optimizer/definition.h"

namespace interp::optimizer {
namespace {

constexpr Form<0> kSgd = {.grad_flags = kMayBeRows};

template <typename M>
struct Rule {
  M rate;
  M operator()(M p, M g, std::array<M, 0>&) const { return p - rate * g; }
};

template <typename M>
absl::Status Sgd(KernelContext& ctx) {
  return RunUpdate<M, kSgd>(ctx, Rule<M>{LearningRate<M>(ctx)}, MissingRows::kUntouched);
}

INTERP_REGISTER_OP(UpdateDef<kSgd>("sgd", UpdateKernels(Sgd<float>, Sgd<double>)));

}  // namespace
}  // namespace interp::optimizer
