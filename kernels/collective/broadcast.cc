// c_broadcast: Out of all ranks = X of rank `root`.
#include "kernels/collective/ring.h"
#include "kernels/util/infer_like.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

template <Collective kRun>
absl::Status Broadcast(KernelContext& ctx) {
  const RingAttrs& attrs = ctx.attrs<RingAttrs>();
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, attrs));
  const Tensor& x = ctx.input(kX);
  return kRun(ctx, *ring,
              {.kind = CommKind::kBroadcast,
               .dtype = x.dtype,
               .root = attrs.root,
               .count = x.numel(),
               .in = x.raw_data(),
               .out = ctx.output(kOut).mutable_raw_data(),
               .name = "c_broadcast"},
              {x.buffer(), ctx.output(kOut).buffer()});
}

INTERP_REGISTER_OP(OpDef{
    .type = "c_broadcast",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<RingAttrs, RingAttrs::Read>,
    .infer = InferLike<kX, kOut>,
    .kernels = CollectiveKernels(Broadcast<BetweenHosts>, Broadcast<BetweenDevices>),
    .inplace = {{kX, kOut}},
    .side_effect = true,
});

}  // namespace
}  // namespace interp
