#include "kernels/cuda/row.h"

#include "core/device/cuda/cuda_device.h"

namespace interp::cuda {

cudaStream_t StreamOf(const KernelContext& ctx) { return HandleOf(ctx.stream()); }

}  // namespace interp::cuda
