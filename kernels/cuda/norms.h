// The norm of all elements of a tensor.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/status.h"

namespace interp::cuda {

// Scratch memory of the functions below.
size_t NormWorkspaceBytes();

// *out = the sum of the squares of `size` floats of x. `workspace` has NormWorkspaceBytes. The bits
// depend on nothing but x. Enqueued on `stream`.
absl::Status SumOfSquares(const float* x, int64_t size, void* workspace, float* out,
                          cudaStream_t stream);

// out = x, scaled down where its norm is more than `max_norm`. May be x. `workspace` as above.
absl::Status ClipByNorm(const float* x, int64_t size, float max_norm, void* workspace, float* out,
                        cudaStream_t stream);

}  // namespace interp::cuda
