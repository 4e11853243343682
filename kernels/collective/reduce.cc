// c_reduce_sum, _max, _min and _prod: Out of rank `root_id` = the elements of X of all ranks
// reduced; Out of the others is their X.
#include "kernels/collective/ring.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/infer_like.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

template <ReduceKind kKind, Collective kRun>
absl::Status Reduce(KernelContext& ctx) {
  const RingAttrs& attrs = ctx.attrs<RingAttrs>();
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, attrs));
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  INTERP_RETURN_IF_ERROR(kRun(ctx, *ring,
                              {.kind = CommKind::kReduce,
                               .dtype = x.dtype,
                               .reduce = kKind,
                               .root = attrs.root,
                               .count = x.numel(),
                               .in = x.raw_data(),
                               .out = out.mutable_raw_data(),
                               .name = "c_reduce"},
                              {x.buffer(), out.buffer()}));
  if (ring->rank() == attrs.root) return absl::OkStatus();
  return CopyUnlessShared(ctx, x, out);
}

template <ReduceKind kKind>
OpDef ReduceDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}},
      .outputs = {{"Out"}},
      .parse = ParseAttrs<RingAttrs, RingAttrs::Read>,
      .infer = InferLike<kX, kOut>,
      .kernels = ReducingKernels(Reduce<kKind, BetweenHosts>, Reduce<kKind, BetweenDevices>),
      .inplace = {{kX, kOut}},
      .side_effect = true,
  };
}

INTERP_REGISTER_OP(ReduceDef<ReduceKind::kSum>("c_reduce_sum"));
INTERP_REGISTER_OP(ReduceDef<ReduceKind::kMax>("c_reduce_max"));
INTERP_REGISTER_OP(ReduceDef<ReduceKind::kMin>("c_reduce_min"));
INTERP_REGISTER_OP(ReduceDef<ReduceKind::kProd>("c_reduce_prod"));

}  // namespace
}  // namespace interp
