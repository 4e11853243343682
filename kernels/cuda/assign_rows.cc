// Rows of assign and share_data, which plans insert as well.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/row.h"

namespace interp::cuda {
namespace {

// Arrays and selected rows are assigned on the host.
absl::Status Row(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  Tensor& out = ctx.output(0);
  if (!x.has_memory() || x.size_bytes() == 0 || x.raw_data() == out.raw_data()) {
    return absl::OkStatus();
  }
  return ToStatus(cudaMemcpyAsync(out.mutable_raw_data(), x.raw_data(), x.size_bytes(),
                                  cudaMemcpyDeviceToDevice, StreamOf(ctx)),
                  "cannot copy 'X'");
}

INTERP_REGISTER_KERNELS("assign", RowsFor({DType::kUndefined}, Row));
INTERP_REGISTER_KERNELS("share_data", RowsFor({DType::kUndefined}, Row));

}  // namespace
}  // namespace interp::cuda
