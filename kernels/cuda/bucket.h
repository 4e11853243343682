// Arrays packed one after the other, as gradients that go to other ranks together are.
#pragma once

#include <cuda_runtime.h>

#include "absl/types/span.h"
#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/array_update.h"

namespace interp::cuda {

// out = in times *weight, rounded to `dtype`: float32, float64, float16 or bfloat16. Sizes count
// elements. Enqueued on `stream`.
absl::Status ScaleArrays(DType dtype, absl::Span<const ArrayUpdate> arrays, const double* weight,
                         cudaStream_t stream);

// out = in. Sizes count bytes.
absl::Status CopyArrays(absl::Span<const ArrayUpdate> arrays, cudaStream_t stream);

}  // namespace interp::cuda
