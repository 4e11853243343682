// lod_reset_grad: X@GRAD = Out@GRAD with the LoD of X.
#include "core/op_def.h"
#include "kernels/util/copy.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kOutGrad = 0;
constexpr int kX = 1;
constexpr int kXGrad = 0;

absl::Status InferLodResetGrad(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  if (!(ctx.input(kOutGrad).shape == x.shape)) {
    return InvalidArgument("'Out@GRAD' has shape ", ToString(ctx.input(kOutGrad).shape),
                           ", expected that of 'X', ", ToString(x.shape));
  }
  ctx.SetShape(kXGrad, x.shape);
  ShareLod(x, ctx.output(kXGrad));
  return absl::OkStatus();
}

absl::Status LodResetGrad(KernelContext& ctx) {
  CopyUnlessShared(ctx.input(kOutGrad), ctx.output(kXGrad));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "lod_reset_grad",
    .inputs = {{"Out@GRAD"}, {"X", kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"X@GRAD"}},
    .infer = InferLodResetGrad,
    .kernels = {{DType::kUndefined, LodResetGrad}},
    .view = {{kOutGrad, kXGrad}},
});

}  // namespace
}  // namespace interp
