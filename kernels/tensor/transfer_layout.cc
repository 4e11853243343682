// transfer_layout: Out = X in the memory order `dst_layout` (a Layout). Plans insert it where an op
// wants another layout than its input has.
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
  const TransferAttrs& attrs = ctx.attrs<TransferAttrs>();
  const Shape& shape = ctx.input(kX).shape;
  const bool image = shape.rank() == 4 || shape.rank() == 5;
  if (!image && shape.numel() > 1) {
    return InvalidArgument("'X' has shape ", ToString(shape),
                           ", expected rank 4 or 5 for a channels-last layout");
  }
  ctx.ShareShape(kX, kOut);
  // What stands for an image that is not defined yet has one element, and no order to change.
  ctx.output(kOut).layout = image ? attrs.dst : Layout::kPlain;
  return absl::OkStatus();
}

absl::Status Transfer(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  const bool same_order =
      x.numel() <= 1 || x.shape[1] <= 1 || x.shape.numel(2, x.shape.rank()) <= 1;
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
