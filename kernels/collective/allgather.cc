// c_allgather: Out = the rows of X of all ranks, those of rank 0 first.
// c_concat: the same along the last dimension, as after a product whose columns are dealt out.
// partial_allgather: part `rank` of X, of `nranks` equal ones, is this rank's; Out has all parts.
#include "kernels/collective/ring.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/gradient_op.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

int64_t RanksOf(const OpContext& ctx) { return ctx.attrs<RingAttrs>().parts(); }

absl::Status InferRows(InferContext& ctx) {
  Shape shape = ctx.input(kX).shape;
  if (shape.rank() == 0) return InvalidArgument("'X' has no dimensions, expected at least one");
  shape[0] *= RanksOf(ctx);
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

absl::Status InferColumns(InferContext& ctx) {
  Shape shape = ctx.input(kX).shape;
  if (shape.rank() == 0) return InvalidArgument("'X' has no dimensions, expected at least one");
  shape[shape.rank() - 1] *= RanksOf(ctx);
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

absl::Status InferParts(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  if (x.numel() % RanksOf(ctx) != 0) {
    return InvalidArgument("'X' is ", DescribeType(x), ", expected elements that ", RanksOf(ctx),
                           " ranks can share");
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

CommCall GatherOf(DType dtype, int64_t count, const void* in, void* out) {
  return {.kind = CommKind::kAllGather,
          .dtype = dtype,
          .count = count,
          .in = in,
          .out = out,
          .name = "c_allgather"};
}

template <Collective kRun>
absl::Status AllGather(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRingOfParts(ctx));
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  return kRun(ctx, *ring, GatherOf(x.dtype, x.numel(), x.raw_data(), out.mutable_raw_data()),
              {x.buffer(), out.buffer()});
}

template <Collective kRun>
absl::Status Concat(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRingOfParts(ctx));
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(out.size_bytes()));
  INTERP_RETURN_IF_ERROR(kRun(ctx, *ring,
                              GatherOf(x.dtype, x.numel(), x.raw_data(), work.data<char>()),
                              {x.buffer(), work.buffer()}));
  if (out.numel() == 0) return absl::OkStatus();
  const int64_t columns = x.shape.back();
  const int64_t ranks = ring->size();
  const Tensor all = Tensor::Borrow(out.dtype, out.shape, work.data<char>());
  return CopyStrided(ctx,
                     CopyDims{{x.numel() / columns, columns, columns * ranks},
                              {ranks, x.numel(), columns},
                              {columns, 1, 1}},
                     {all}, {out});
}

template <Collective kRun>
absl::Status PartialAllGather(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRingOfParts(ctx));
  const Tensor& x = ctx.input(kX);
  const size_t part = x.size_bytes() / ring->size();
  return kRun(ctx, *ring,
              GatherOf(x.dtype, x.numel() / ring->size(),
                       static_cast<const char*>(x.raw_data()) + part * ring->rank(),
                       ctx.output(kOut).mutable_raw_data()),
              {x.buffer(), ctx.output(kOut).buffer()});
}

absl::Status MakeSplit(GradientMaker& maker) {
  return AddGradientOp(maker, "c_split", {{"X", "Out@GRAD"}}, {{"Out", "X@GRAD"}});
}

OpDef GatherDef(absl::string_view type, absl::Status (*infer)(InferContext&),
                std::vector<KernelDef> kernels, GradientDef gradient = {}) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}},
      .outputs = {{"Out"}},
      .parse = ParseAttrs<RingAttrs, RingAttrs::Read>,
      .infer = infer,
      .kernels = std::move(kernels),
      .side_effect = true,
      .gradient = std::move(gradient),
  };
}

INTERP_REGISTER_OP(GatherDef("c_allgather", InferRows,
                             CollectiveKernels(AllGather<BetweenHosts>,
                                               AllGather<BetweenDevices>)));
INTERP_REGISTER_OP(GatherDef("c_concat", InferColumns,
                             CollectiveKernels(Concat<BetweenHosts>, Concat<BetweenDevices>),
                             {.make = MakeSplit}));
INTERP_REGISTER_OP(GatherDef("partial_allgather", InferParts,
                             CollectiveKernels(PartialAllGather<BetweenHosts>,
                                               PartialAllGather<BetweenDevices>)));

}  // namespace
}  // namespace interp
