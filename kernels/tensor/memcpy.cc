// memcpy_h2d, memcpy_d2h, memcpy_p2p: see core/device/memcpy.h, where plans for devices need them,
// too. memcpy: Out = X, in the host's memory whatever `dst_place_type` says.
#include "core/device/memcpy.h"

#include "kernels/util/copy.h"
#include "kernels/util/infer_like.h"

namespace interp {
namespace {

INTERP_REGISTER_OP(MemcpyHostToDevice());
INTERP_REGISTER_OP(MemcpyDeviceToHost());
INTERP_REGISTER_OP(MemcpyPeerToPeer());

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status Memcpy(KernelContext& ctx) {
  CopyUnlessShared(ctx.input(kX), ctx.output(kOut));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "memcpy",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .infer = InferLike<kX, kOut>,
    .kernels = {{DType::kUndefined, Memcpy}},
    .host_only = true,
});

}  // namespace
}  // namespace interp
