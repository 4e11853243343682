// c_scatter: Out = part `rank` of the rows of X of rank `root`, of `nranks` equal parts.
#include <algorithm>

#include "kernels/collective/ring.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  Shape shape = ctx.input(kX).shape;
  const int64_t ranks = std::max(1, ctx.attrs<RingAttrs>().nranks);
  INTERP_ASSIGN_OR_RETURN(const int64_t rows, RowsOfPart(ctx, kX, ranks));
  shape[0] = rows;
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

absl::Status Scatter(KernelContext& ctx) {
  RingAttrs attrs = ctx.attrs<RingAttrs>();
  attrs.nranks = std::max(1, attrs.nranks);
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, attrs));
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  return BetweenHosts(ctx, *ring,
                      {.kind = CommKind::kScatter,
                       .dtype = x.dtype,
                       .root = attrs.root,
                       .count = out.numel(),
                       .in = x.raw_data(),
                       .out = out.mutable_raw_data(),
                       .name = "c_scatter"});
}

INTERP_REGISTER_OP(OpDef{
    .type = "c_scatter",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<RingAttrs, RingAttrs::Read>,
    .infer = Infer,
    .kernels = {{.dtype = DType::kUndefined, .run = Scatter, .host_only = true}},
    .side_effect = true,
});

}  // namespace
}  // namespace interp
