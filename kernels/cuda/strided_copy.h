// Copies between tensors whose elements lie apart: concat, split, slice, expand and transpose.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/types/span.h"
#include "core/status.h"

namespace interp::cuda {

// Elements of a tensor: where the first one lies and, for each dimension, how many elements on the
// next one does. A stride of 0 repeats an element; negative ones go backwards.
struct StridedSource {
  const void* data = nullptr;
  absl::Span<const int64_t> strides;
};
struct StridedTarget {
  void* data = nullptr;
  absl::Span<const int64_t> strides;
};

// Copies the `dims` elements, of 1, 2, 4, 8 or 16 bytes each, from one to the other. No two
// elements of the target share memory, nor does the source with it. Enqueued on `stream`.
absl::Status StridedCopy(int element_bytes, absl::Span<const int64_t> dims,
                         const StridedSource& from, const StridedTarget& to, cudaStream_t stream);

}  // namespace interp::cuda
