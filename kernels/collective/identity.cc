// c_identity: Out = X. It begins a part that each rank computes its own piece of, so that its
// gradient is the sum over the ranks.
// c_split: Out = piece `rank` of X along the last dimension, of `nranks` equal ones. Its gradient
// puts the pieces together (c_concat; Paddle's c_allgather would do so along the first dimension).
#include "kernels/collective/ring.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/gradient_op.h"
#include "kernels/util/infer_like.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status Identity(KernelContext& ctx) {
  return CopyUnlessShared(ctx, ctx.input(kX), ctx.output(kOut));
}

absl::Status InferSplit(InferContext& ctx) {
  Shape shape = ctx.input(kX).shape;
  const int64_t ranks = ctx.attrs<RingAttrs>().parts();
  if (shape.rank() == 0 || shape.back() % ranks != 0) {
    return InvalidArgument("'X' has shape ", ToString(shape), ", expected a last dimension that ",
                           ranks, " ranks can share");
  }
  shape[shape.rank() - 1] /= ranks;
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

absl::Status Split(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRingOfParts(ctx));
  Tensor& out = ctx.output(kOut);
  if (out.numel() == 0) return absl::OkStatus();
  const int64_t columns = out.shape.back();
  return CopyStrided(
      ctx, CopyDims{{out.numel() / columns, columns * ring->size(), columns}, {columns, 1, 1}},
      {ctx.input(kX), columns * ring->rank()}, {out});
}

absl::Status MakeSum(GradientMaker& maker) {
  return AddGradientOp(maker, "c_allreduce_sum", {{"X", "Out@GRAD"}}, {{"Out", "X@GRAD"}});
}
absl::Status MakeConcat(GradientMaker& maker) {
  return AddGradientOp(maker, "c_concat", {{"X", "Out@GRAD"}}, {{"Out", "X@GRAD"}});
}

INTERP_REGISTER_OP(OpDef{
    .type = "c_identity",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .infer = InferLike<kX, kOut>,
    .kernels = MoveKernels(Identity),
    .view = {{kX, kOut}},
    .gradient = {.make = MakeSum},
});
INTERP_REGISTER_OP(OpDef{
    .type = "c_split",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<RingAttrs, RingAttrs::Read>,
    .infer = InferSplit,
    .kernels = {{.dtype = DType::kUndefined, .run = Split, .host_only = true},
                DeviceMoveKernel(DType::kUndefined, Split)},
    .gradient = {.make = MakeConcat},
});

}  // namespace
}  // namespace interp
