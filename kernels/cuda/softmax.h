// softmax and log_softmax along one dimension.
#pragma once

#include <cuda_runtime.h>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/line_shape.h"

namespace interp::cuda {

// y = softmax(x) of each line of `shape`, or its logarithm; float32, float16 or bfloat16, computed
// in float32. `y` may be `x`. Enqueued on `stream`.
absl::Status Softmax(DType dtype, bool logarithm, const void* x, const LineShape& shape, void* y,
                     cudaStream_t stream);

}  // namespace interp::cuda
