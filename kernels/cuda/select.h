// Choices between elements: where and its gradient, one_hot, masks of lengths, the halves of
// matrices.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// out[i] = condition[i] ? x[i] : y[i], elements of 1, 2, 4, 8 or 16 bytes; a null `x` or `y` stands
// for zeros. `out` may be `x` or `y`. Enqueued on `stream`.
absl::Status Where(int element_bytes, const bool* condition, const void* x, const void* y,
                   void* out, int64_t count, cudaStream_t stream);

// out[i][j] = `one` where j is x[i], and 0 elsewhere; rows of `depth` elements of 1, 2, 4, 8 or
// 16 bytes. `one` is the low bytes of an element, whose others are 0; `x` is int32 or int64.
// Enqueued on `stream`.
absl::Status OneHot(DType index_dtype, const void* x, int64_t count, int64_t depth,
                    int element_bytes, uint64_t one, void* out, cudaStream_t stream);

// out[i][j] = `one` where j < lengths[i], and 0 elsewhere; `one` and elements as of OneHot.
// `lengths` is memory of the device. Enqueued on `stream`.
absl::Status MaskLengths(const int64_t* lengths, int64_t count, int64_t width, int element_bytes,
                         uint64_t one, void* out, cudaStream_t stream);

// Of each of `matrices` matrices the elements on and below diagonal `diagonal` (`lower`), or on and
// above it, and 0 elsewhere. Elements of 1, 2, 4, 8 or 16 bytes. Enqueued on `stream`.
struct Halves {
  int64_t matrices = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t diagonal = 0;
  bool lower = true;
};
absl::Status KeepHalf(int element_bytes, const void* x, const Halves& halves, void* out,
                      cudaStream_t stream);

}  // namespace interp::cuda
