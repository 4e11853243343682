// Copies of boxes of elements between any memory of a GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "core/status.h"
#include "kernels/util/strided_copy.h"

namespace interp::cuda {

// CopyStrided of strided_copy.h, enqueued on `stream`, in the order of the target, in which threads
// with neighbouring numbers write neighbours.
absl::Status CopyBox(size_t element_bytes, absl::Span<const CopyDim> dims, const void* src,
                     void* dst, cudaStream_t stream);

}  // namespace interp::cuda
