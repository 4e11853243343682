// alltoall: the rows of X in as many equal parts as there are ranks; part i goes to rank i, and Out
// has the parts of all ranks for this one. Its own gradient: what came from a rank goes back there.
#include "kernels/collective/ring.h"
#include "kernels/util/gradient_op.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  ctx.SetShape(kOut, ctx.input(kX).shape);
  return absl::OkStatus();
}

template <Collective kRun>
absl::Status AllToAll(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, ctx.attrs<RingAttrs>()));
  const Tensor& x = ctx.input(kX);
  INTERP_RETURN_IF_ERROR(RowsOfPart(ctx, kX, ring->size()).status());
  return kRun(ctx, *ring,
              {.kind = CommKind::kAllToAll,
               .dtype = x.dtype,
               .count = x.numel() / ring->size(),
               .in = x.raw_data(),
               .out = ctx.output(kOut).mutable_raw_data(),
               .name = "alltoall"},
              {x.buffer(), ctx.output(kOut).buffer()});
}

absl::Status MakeGradient(GradientMaker& maker) {
  return AddGradientOp(maker, "alltoall", {{"X", "Out@GRAD"}}, {{"Out", "X@GRAD"}});
}

// Between GPUs, what has come in would lie where something is still to be sent from.
std::vector<KernelDef> Kernels() {
  std::vector<KernelDef> rows = CollectiveKernels(AllToAll<BetweenHosts>, AllToAll<BetweenDevices>);
  for (KernelDef& row : rows) row.inplace = row.place == PlaceKind::kCpu;
  return rows;
}

INTERP_REGISTER_OP(OpDef{
    .type = "alltoall",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<RingAttrs, RingAttrs::Read>,
    .infer = Infer,
    .kernels = Kernels(),
    .inplace = {{kX, kOut}},
    .side_effect = true,
    .gradient = {.make = MakeGradient},
});

}  // namespace
}  // namespace interp
