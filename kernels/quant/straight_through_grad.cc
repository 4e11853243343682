// stright_throuth_estimator_grad (Paddle's spelling): X@GRAD = Out@GRAD. The gradient of ops that
// round to a grid and come back is taken as if they did not.
#include "core/op_def.h"
#include "kernels/util/copy.h"

namespace interp {
namespace {

constexpr int kOutGrad = 0;
constexpr int kXGrad = 0;

absl::Status InferStraightThrough(InferContext& ctx) {
  ctx.SetShape(kXGrad, ctx.input(kOutGrad).shape);
  return absl::OkStatus();
}

absl::Status StraightThrough(KernelContext& ctx) {
  CopyUnlessShared(ctx.input(kOutGrad), ctx.output(kXGrad));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "stright_throuth_estimator_grad",
    .inputs = {{"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .infer = InferStraightThrough,
    .kernels = {{DType::kFloat32, StraightThrough}},
    .layout = LayoutRule::kFollows,
    .view = {{kOutGrad, kXGrad}},
});

}  // namespace
}  // namespace interp
