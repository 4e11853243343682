// The row of inverse.
#include "kernels/cuda/inverse.h"
#include "kernels/cuda/row.h"

namespace interp::cuda {
namespace {

// Input -> Output. A matrix without inverse, which the host refuses, gives NaN: a GPU does not look
// before it enqueues.
absl::Status Inverse(KernelContext& ctx) {
  const Tensor& x = ctx.input(/*slot=*/0);
  if (x.numel() == 0) return absl::OkStatus();
  const int64_t n = x.shape.back();
  INTERP_ASSIGN_OR_RETURN(const Workspace scratch, ctx.workspace(x.size_bytes()));
  return Invert(x.dtype, x.numel() / (n * n), n, x.raw_data(), scratch.data(),
                ctx.output(/*slot=*/0).mutable_raw_data(), StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("inverse", RowsFor({DType::kFloat32, DType::kFloat64}, Inverse));

}  // namespace
}  // namespace interp::cuda
