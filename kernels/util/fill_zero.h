// Tensors of zeros, for gradients of which only a part is written.
#pragma once

#include <cstring>

#include "core/tensor.h"
#include "kernels/util/parallel_for.h"

namespace interp {

// Sets all elements of `tensor` to 0, whatever their dtype.
inline void FillZero(int num_threads, Tensor& tensor) {
  char* const bytes = static_cast<char*>(tensor.mutable_raw_data());
  ParallelFor(num_threads, static_cast<int64_t>(tensor.size_bytes()), 4 * kElementwiseGrain,
              [bytes](int64_t begin, int64_t end) {
                std::memset(bytes + begin, 0, static_cast<size_t>(end - begin));
              });
}

}  // namespace interp
