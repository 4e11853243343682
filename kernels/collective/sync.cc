// barrier: Out = X, and no rank of the ring is through before all have come.
// c_sync_comm_stream, c_wait_comm: Out = X, after all collectives that are under way on the ring.
// c_sync_calc_stream, c_wait_compute: Out = X: what a collective reads here has been computed.
#include "core/device/device.h"
#include "kernels/collective/ring.h"
#include "kernels/util/data_mover.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  const auto inputs = ctx.inputs(kX);
  const auto outputs = ctx.outputs(kOut);
  if (inputs.size() < outputs.size()) {
    return InvalidArgument("'Out' has ", outputs.size(),
                           " arguments, expected at most those of "
                           "'X', ",
                           inputs.size());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (inputs[i] == nullptr || outputs[i] == nullptr) continue;
    outputs[i]->shape = inputs[i]->shape;
    outputs[i]->lod = inputs[i]->lod;
  }
  return absl::OkStatus();
}

absl::Status Copy(KernelContext& ctx) {
  for (size_t i = 0; i < ctx.outputs(kOut).size(); ++i) {
    const Tensor* const x = ctx.inputs(kX)[i];
    Tensor* const out = ctx.outputs(kOut)[i];
    if (x == nullptr || out == nullptr) continue;
    INTERP_RETURN_IF_ERROR(CopyUnlessShared(ctx, *x, *out));
  }
  return absl::OkStatus();
}

absl::Status Barrier(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, ctx.attrs<RingAttrs>()));
  INTERP_RETURN_IF_ERROR(ring->Run({.kind = CommKind::kBarrier, .name = "barrier"}));
  return Copy(ctx);
}

absl::Status WaitForRing(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, ctx.attrs<RingAttrs>()));
  INTERP_RETURN_IF_ERROR(ring->WaitFor(/*out=*/nullptr));
  return Copy(ctx);
}

std::vector<KernelDef> WaitKernels(KernelFn run) {
  return {{.dtype = DType::kUndefined, .run = run, .host_only = true},
          DeviceMoveKernel(DType::kUndefined, run)};
}

OpDef SyncDef(absl::string_view type, std::vector<KernelDef> kernels,
              int flags = kVariadic | kAnyDType) {
  return OpDef{
      .type = type,
      .inputs = {{"X", flags}},
      .outputs = {{"Out", flags | kOptional}},
      .parse = ParseAttrs<RingAttrs, RingAttrs::Read>,
      .infer = Infer,
      .kernels = std::move(kernels),
      .view = {{kX, kOut, /*each=*/true}},
      .side_effect = true,
      .gradient = {.none = true},
  };
}

// Of hosts alone: what one does before it, such as saving, is done when others are behind it.
INTERP_REGISTER_OP(SyncDef("barrier", {{DType::kUndefined, Barrier}}, /*flags=*/0));
INTERP_REGISTER_OP(SyncDef("c_sync_calc_stream", WaitKernels(Copy)));
INTERP_REGISTER_OP(SyncDef("c_sync_comm_stream", WaitKernels(WaitForRing)));
INTERP_REGISTER_OP(SyncDef("c_wait_compute", WaitKernels(Copy)));
INTERP_REGISTER_OP(SyncDef("c_wait_comm", WaitKernels(WaitForRing)));

}  // namespace
}  // namespace interp
