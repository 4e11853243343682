// c_reducescatter: Out = part `rank` of the rows of X of all ranks added up, of as many equal parts
// as there are ranks.
#include "kernels/collective/ring.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

template <Collective kRun>
absl::Status ReduceScatter(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRingOfParts(ctx));
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  return kRun(ctx, *ring,
              {.kind = CommKind::kReduceScatter,
               .dtype = x.dtype,
               .count = out.numel(),
               .in = x.raw_data(),
               .out = out.mutable_raw_data(),
               .name = "c_reducescatter"},
              {x.buffer(), out.buffer()});
}

INTERP_REGISTER_OP(OpDef{
    .type = "c_reducescatter",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<RingAttrs, RingAttrs::Read>,
    .infer = InferPartOfRows,
    .kernels = ReducingKernels(ReduceScatter<BetweenHosts>, ReduceScatter<BetweenDevices>),
    .side_effect = true,
});

}  // namespace
}  // namespace interp
