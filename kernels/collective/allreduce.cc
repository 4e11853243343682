// c_allreduce_sum, _max, _min and _prod, mp_allreduce_sum: Out = the elements of X of all ranks of
// the ring reduced, in the order of the ranks. mp_allreduce_sum ends a product whose rows are
// dealt out over ranks; since each of them goes on with the whole sum, its gradient is c_identity.
#include "kernels/collective/ring.h"
#include "kernels/util/gradient_op.h"
#include "kernels/util/infer_like.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

template <ReduceKind kKind, Collective kRun>
absl::Status AllReduce(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, ctx.attrs<RingAttrs>()));
  const Tensor& x = ctx.input(kX);
  return kRun(ctx, *ring,
              {.kind = CommKind::kAllReduce,
               .dtype = x.dtype,
               .reduce = kKind,
               .count = x.numel(),
               .in = x.raw_data(),
               .out = ctx.output(kOut).mutable_raw_data(),
               .name = "c_allreduce"},
              {x.buffer(), ctx.output(kOut).buffer()});
}

absl::Status MakeIdentity(GradientMaker& maker) {
  return AddGradientOp(maker, "c_identity", {{"X", "Out@GRAD"}}, {{"Out", "X@GRAD"}});
}

template <ReduceKind kKind>
OpDef AllReduceDef(absl::string_view type, const GradientDef& gradient = {}) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}},
      .outputs = {{"Out"}},
      .parse = ParseAttrs<RingAttrs, RingAttrs::Read>,
      .infer = InferLike<kX, kOut>,
      .kernels = ReducingKernels(AllReduce<kKind, BetweenHosts>, AllReduce<kKind, BetweenDevices>),
      .inplace = {{kX, kOut}},
      .side_effect = true,
      .gradient = gradient,
  };
}

INTERP_REGISTER_OP(AllReduceDef<ReduceKind::kSum>("c_allreduce_sum"));
INTERP_REGISTER_OP(AllReduceDef<ReduceKind::kMax>("c_allreduce_max"));
INTERP_REGISTER_OP(AllReduceDef<ReduceKind::kMin>("c_allreduce_min"));
INTERP_REGISTER_OP(AllReduceDef<ReduceKind::kProd>("c_allreduce_prod"));
INTERP_REGISTER_OP(AllReduceDef<ReduceKind::kSum>("mp_allreduce_sum", {.make = MakeIdentity}));

}  // namespace
}  // namespace interp
