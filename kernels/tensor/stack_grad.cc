// stack_grad: X@GRAD[i] = Y@GRAD with index i along `axis`, that dimension dropped.
// unstack_grad: X@GRAD = the gradients Y@GRAD along a new dimension `axis`.
#include "core/op_def.h"
#include "kernels/tensor/stacking.h"

namespace interp {
namespace {

using stacking::ReadStackAttrs;
using stacking::StackAttrs;

constexpr int kX = 1;
constexpr int kXGrad = 0;

absl::Status InferStackGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(stacking::InferUnstack(ctx));
  const absl::Span<const Tensor* const> inputs = ctx.inputs(kX);
  const absl::Span<Tensor* const> outputs = ctx.outputs(kXGrad);
  for (size_t i = 0; i < inputs.size() && i < outputs.size(); ++i) {
    if (inputs[i] != nullptr && outputs[i] != nullptr) ShareLod(*inputs[i], *outputs[i]);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "stack_grad",
    .inputs = {{"Y@GRAD", kAnyLayout},
               {"X", kOptional | kVariadic | kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"X@GRAD", kVariadic | kOptional}},
    .parse = ParseAttrs<StackAttrs, ReadStackAttrs>,
    .infer = InferStackGrad,
    .kernels = MoveKernels(stacking::Unstack),
});

INTERP_REGISTER_OP(OpDef{
    .type = "unstack_grad",
    .inputs = {{"Y@GRAD", kVariadic | kAnyLayout},
               {"X", kOptional | kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<StackAttrs, ReadStackAttrs>,
    .infer = stacking::InferStack,
    .kernels = MoveKernels(stacking::Stack),
});

}  // namespace
}  // namespace interp
