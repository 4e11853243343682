// Gradients of softmax and log_softmax.
#pragma once

#include <cuda_runtime.h>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/line_shape.h"

namespace interp::cuda {

// x_grad = (out_grad - sum of out_grad out) out, or with `logarithm` out_grad - e^out sum of
// out_grad, sums along the dimension that was normalised; float32, float16 or bfloat16, computed in
// float32. `x_grad` may be `out` or `out_grad`. Enqueued on `stream`.
absl::Status SoftmaxGradient(DType dtype, bool logarithm, const void* out, const void* out_grad,
                             const LineShape& shape, void* x_grad, cudaStream_t stream);

}  // namespace interp::cuda
