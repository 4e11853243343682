// Sums of several tensors.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/types/span.h"
#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// out[i] = inputs[0][i] + inputs[1][i] + ..., in that order, of `size` elements of float32,
// float64, float16, bfloat16, int32 or int64. 16-bit floats are added in float32 and rounded once
// for each 64 inputs. There is at least one input; `out` may be any of the first 64. Enqueued on
// `stream`.
absl::Status SumTensors(DType dtype, absl::Span<const void* const> inputs, void* out, int64_t size,
                        cudaStream_t stream);

}  // namespace interp::cuda
