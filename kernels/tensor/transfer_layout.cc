// transfer_layout: Out = X in the memory order `dst_layout` (a Layout). Plans insert it where an op
// wants another layout than its input has. What is declared as an image and is none in a run has
// one order alone and is handed on in it: such as an image that a squeeze without axes has left
// fewer dimensions, and what stands for an image that is not defined yet. Kernels go by the tensor.
#include "core/op_def.h"
#include "kernels/util/data_mover.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct TransferAttrs {
  Layout dst = Layout::kPlain;
};

TransferAttrs ReadTransferAttrs(AttrReader& reader) {
  const int32_t dst = reader.Int("dst_layout", 0);
  if (dst != 0 && dst != 1) reader.Fail("attribute 'dst_layout' is neither 0 nor 1");
  return {static_cast<Layout>(dst)};
}

absl::Status InferTransfer(InferContext& ctx) {
  const int rank = ctx.input(kX).shape.rank();
  const bool image = rank == 4 || rank == 5;
  ctx.ShareShape(kX, kOut);
  ctx.output(kOut).layout = image ? ctx.attrs<TransferAttrs>().dst : Layout::kPlain;
  return absl::OkStatus();
}

absl::Status Transfer(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  const bool same_order = x.layout == out.layout || x.numel() <= 1 || x.shape[1] <= 1 ||
                          x.shape.numel(2, x.shape.rank()) <= 1;
  if (same_order && x.place().on_host()) {
    // Safe without the plan's knowledge: nobody writes memory it shares. Memory of a device is
    // handed on by what the plan knows.
    out.ShareMemory(x);
    return absl::OkStatus();
  }
  return CopyTensor(ctx, x, out);
}

INTERP_REGISTER_OP(OpDef{
    .type = "transfer_layout",
    .inputs = {{"X", kAnyLayout}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<TransferAttrs, ReadTransferAttrs>,
    .infer = InferTransfer,
    .kernels = MoveKernels(Transfer),
});

}  // namespace
}  // namespace interp
