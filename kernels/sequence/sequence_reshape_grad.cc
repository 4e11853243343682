// sequence_reshape_grad, lod_reset_grad: Out@GRAD with the shape and the LoD of X.
#include "core/op_def.h"
#include "kernels/util/data_mover.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

absl::Status InferLikeX(InferContext& ctx) {
  const int64_t elements = ctx.input(kX).numel();
  if (ctx.input(kOutGrad).numel() != elements) {
    return InvalidArgument("input 'Out@GRAD' has shape ", ToString(ctx.input(kOutGrad).shape),
                           ", expected ", elements, " elements as in 'X'");
  }
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

absl::Status CopyGradient(KernelContext& ctx) {
  Tensor* const out = ctx.optional_output(kXGrad);
  if (out == nullptr) return absl::OkStatus();
  return CopyUnlessShared(ctx, ctx.input(kOutGrad), *out);
}

OpDef ViewGradient(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kNoNeedBuffer}, {"Out@GRAD"}},
      .outputs = {{"X@GRAD", kOptional}},
      .infer = InferLikeX,
      .kernels = MoveKernels(CopyGradient),
  };
}

INTERP_REGISTER_OP(ViewGradient("sequence_reshape_grad"));
INTERP_REGISTER_OP(ViewGradient("lod_reset_grad"));

}  // namespace
}  // namespace interp
