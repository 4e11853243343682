// Inverses of square matrices.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// out = the inverses of `count` matrices `x` of n x n, by an LU decomposition with row exchanges.
// One without inverse gives NaN. `scratch` is as large as `x`; none of the three overlap. Of
// float32 or float64. Enqueued on `stream`.
absl::Status Invert(DType dtype, int64_t count, int64_t n, const void* x, void* scratch, void* out,
                    cudaStream_t stream);

}  // namespace interp::cuda
