// softmax and log_softmax along one dimension.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// A tensor as outer x length x inner elements, of which the middle dimension is normalised.
struct SoftmaxShape {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};

// y = softmax(x), or its logarithm; float32, float16 or bfloat16, computed in float32. `y` may be
// `x`. Enqueued on `stream`.
absl::Status Softmax(DType dtype, bool logarithm, const void* x, const SoftmaxShape& shape, void* y,
                     cudaStream_t stream);

}  // namespace interp::cuda
