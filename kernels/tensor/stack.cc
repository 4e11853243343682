// stack: Y = the tensors X, all of one shape, along a new dimension `axis`.
// unstack, unbind: the reverse; output i is X with index i along `axis`, that dimension dropped.
#include "core/op_def.h"
#include "kernels/tensor/stacking.h"
#include "kernels/util/gradient_op.h"

namespace interp {
namespace {

using stacking::InferStack;
using stacking::InferUnstack;
using stacking::kOut;
using stacking::kX;
using stacking::ReadStackAttrs;
using stacking::Stack;
using stacking::StackAttrs;
using stacking::Unstack;

INTERP_REGISTER_OP(OpDef{
    .type = "stack",
    .inputs = {{"X", kVariadic | kAnyLayout}},
    .outputs = {{"Y"}},
    .parse = ParseAttrs<StackAttrs, ReadStackAttrs>,
    .infer = InferStack,
    .kernels = MoveKernels(Stack),
    .gradient = {.inputs = {"X", "Y@GRAD"}, .outputs = {"X@GRAD"}},
});

// Unlike unstack, unbind hands the LoD on.
absl::Status InferUnbind(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(InferUnstack(ctx));
  for (Tensor* out : ctx.outputs(kOut)) {
    if (out != nullptr) ShareLod(ctx.input(kX), *out);
  }
  return absl::OkStatus();
}

OpDef UnstackDef(absl::string_view type, absl::string_view output,
                 absl::Status (*infer)(InferContext&), GradientDef gradient) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kAnyLayout}},
      .outputs = {{output, kVariadic}},
      .parse = ParseAttrs<StackAttrs, ReadStackAttrs>,
      .infer = infer,
      .kernels = MoveKernels(Unstack),
      .gradient = std::move(gradient),
  };
}

// The gradients of the parts, stacked.
absl::Status MakeUnbindGradient(GradientMaker& maker) {
  return AddGradientOp(maker, "stack", {{"X", "Out@GRAD"}}, {{"Y", "X@GRAD"}});
}

INTERP_REGISTER_OP(UnstackDef("unstack", "Y", InferUnstack,
                              {.inputs = {"Y@GRAD"}, .outputs = {"X@GRAD"}}));
INTERP_REGISTER_OP(UnstackDef("unbind", "Out", InferUnbind, {.make = MakeUnbindGradient}));

}  // namespace
}  // namespace interp
