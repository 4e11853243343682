// Rows of pool2d, pool3d and their gradients.
#include "kernels/cuda/pool.h"
#include "kernels/cuda/row.h"
#include "kernels/pool/pool_problem.h"

namespace interp::cuda {
namespace {

// The windows of this run. The size of the kernel may be that of the tensors in `slots`.
struct PoolCase {
  nn::Pool pool;
  bool channels_last = false;
};
absl::StatusOr<PoolCase> CaseOf(const KernelContext& ctx, nn::KernelSizeSlots slots) {
  nn::PoolAttrs own;
  INTERP_ASSIGN_OR_RETURN(const nn::PoolAttrs* const attrs, nn::PoolAttrsOf(ctx, slots, own));
  const Tensor& x = ctx.input(0);
  INTERP_ASSIGN_OR_RETURN(const nn::PoolShapes shapes, nn::ResolvePool(*attrs, x.shape));
  return PoolCase{nn::MakePool(*attrs, shapes.window, x), attrs->channels_last_dims};
}

absl::Status Forward(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const PoolCase window, CaseOf(ctx, {.tensor = 1, .list = 2}));
  return PoolWindows(ctx.output(0).dtype, window.pool, window.channels_last,
                     ctx.input(0).raw_data(), ctx.output(0).mutable_raw_data(), StreamOf(ctx));
}

absl::Status Gradient(KernelContext& ctx) {
  Tensor* const x_grad = ctx.optional_output(0);
  if (x_grad == nullptr) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const PoolCase window, CaseOf(ctx, {.tensor = 3, .list = 4}));
  return PoolGradient(x_grad->dtype,
                      {.pool = window.pool,
                       .channels_last = window.channels_last,
                       .x = ctx.input(0).raw_data(),
                       .out = ctx.input(1).raw_data(),
                       .out_grad = ctx.input(2).raw_data(),
                       .x_grad = x_grad->mutable_raw_data()},
                      StreamOf(ctx));
}

std::vector<KernelDef> PoolRows(KernelFn run) {
  return RowsFor({DType::kFloat32, DType::kBFloat16}, run);
}

INTERP_REGISTER_KERNELS("pool2d", PoolRows(Forward));
INTERP_REGISTER_KERNELS("pool3d", PoolRows(Forward));
INTERP_REGISTER_KERNELS("pool2d_grad", PoolRows(Gradient));
INTERP_REGISTER_KERNELS("pool3d_grad", PoolRows(Gradient));

}  // namespace
}  // namespace interp::cuda
