// Rows of squared_l2_norm and clip_by_norm.
#include "kernels/cuda/norms.h"
#include "kernels/cuda/row.h"
#include "kernels/math/norm_attrs.h"

namespace interp::cuda {
namespace {

absl::Status SquaredNorm(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(NormWorkspaceBytes()));
  const Tensor& x = ctx.input(0);
  return SumOfSquares(x.data<float>(), x.numel(), work.data(), ctx.output(0).mutable_data<float>(),
                      StreamOf(ctx));
}

absl::Status ClipNorm(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(NormWorkspaceBytes()));
  const Tensor& x = ctx.input(0);
  return ClipByNorm(x.data<float>(), x.numel(), ctx.attrs<ClipByNormAttrs>().max_norm, work.data(),
                    ctx.output(0).mutable_data<float>(), StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("squared_l2_norm", RowsFor({DType::kFloat32}, SquaredNorm));
INTERP_REGISTER_KERNELS("clip_by_norm", RowsFor({DType::kFloat32}, ClipNorm));

}  // namespace
}  // namespace interp::cuda
