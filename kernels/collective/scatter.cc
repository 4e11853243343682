// c_scatter: Out = part `rank` of the rows of X of rank `root`, of `nranks` equal parts.
#include "kernels/collective/ring.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status Scatter(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRingOfParts(ctx));
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  return BetweenHosts(ctx, *ring,
                      {.kind = CommKind::kScatter,
                       .dtype = x.dtype,
                       .root = ctx.attrs<RingAttrs>().root,
                       .count = out.numel(),
                       .in = x.raw_data(),
                       .out = out.mutable_raw_data(),
                       .name = "c_scatter"},
                      {x.buffer(), out.buffer()});
}

INTERP_REGISTER_OP(OpDef{
    .type = "c_scatter",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<RingAttrs, RingAttrs::Read>,
    .infer = InferPartOfRows,
    .kernels = {{.dtype = DType::kUndefined, .run = Scatter, .host_only = true}},
    .side_effect = true,
});

}  // namespace
}  // namespace interp
