// share_buffer: Out[i] = X[i], and XOut[i] is X[i]. Paddle's build strategies write it before an op
// that gives Out[i] in the memory of X[i], which plans find for themselves. So Out[i] shares memory
// until that op writes it. (Paddle: fluid/operators/share_buffer_op.cc.)
#include "core/op_def.h"
#include "kernels/util/data_mover.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kXOut = 1;

void InferDTypes(DTypeContext& ctx) {
  ctx.Set(kOut, ctx.input(kX));
  ctx.Set(kXOut, ctx.input(kX));
}

absl::Status Infer(InferContext& ctx) {
  const auto inputs = ctx.inputs(kX);
  for (const int slot : {kOut, kXOut}) {
    const auto outputs = ctx.outputs(slot);
    if (slot == kXOut && outputs.empty()) continue;
    if (inputs.size() != outputs.size()) {
      return InvalidArgument("'X' has ", inputs.size(), " arguments and '",
                             slot == kOut ? "Out" : "XOut", "' ", outputs.size());
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == nullptr) return InvalidArgument("'X' has an empty argument");
      if (inputs[i]->dtype != inputs[0]->dtype) {
        return Unimplemented("'X' is ", DescribeType(*inputs[0]), " and ", DescribeType(*inputs[i]),
                             ": tensors of two dtypes in one op");
      }
      if (outputs[i] == nullptr) continue;
      outputs[i]->shape = inputs[i]->shape;
      outputs[i]->lod = inputs[i]->lod;
    }
  }
  return absl::OkStatus();
}

absl::Status ShareBuffers(KernelContext& ctx) {
  const auto inputs = ctx.inputs(kX);
  for (const int slot : {kOut, kXOut}) {
    const auto outputs = ctx.outputs(slot);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == nullptr || outputs[i]->raw_data() == inputs[i]->raw_data()) continue;
      if (inputs[i]->place().on_host()) {
        // Safe without the plan's knowledge: nobody writes memory it shares.
        outputs[i]->ShareMemory(*inputs[i]);
      } else {
        INTERP_RETURN_IF_ERROR(CopyTensor(ctx, *inputs[i], *outputs[i]));
      }
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "share_buffer",
    .inputs = {{"X", kVariadic | kAnyDType}},
    .outputs = {{"Out", kVariadic}, {"XOut", kVariadic | kOptional}},
    .infer_dtype = InferDTypes,
    .infer = Infer,
    .kernels = MoveKernels(ShareBuffers),
    .layout = LayoutRule::kFollows,
    .inplace = {{kX, kXOut, /*each=*/true}},
});

}  // namespace
}  // namespace interp
