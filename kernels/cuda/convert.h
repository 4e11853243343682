// Fills and casts.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// Sets `count` elements of 1, 2, 4 or 8 bytes to the low bytes of `bits`. Enqueued on `stream`.
absl::Status Fill(int element_bytes, uint64_t bits, void* out, int64_t count, cudaStream_t stream);

// The same with an element of 1, 2, 4, 8 or 16 bytes that lies on the host at `value`, which is
// read before this returns.
absl::Status FillWith(int element_bytes, const void* value, void* out, int64_t count,
                      cudaStream_t stream);

// out[i] = x[i], converted as the host does: NaN and floats out of range become the smallest value
// of a 32- or 64-bit integer, narrower integers keep low bits of the 32-bit result, anything but
// zero is true, of complex numbers the real part stays. From and to bool, uint8, int8, int16,
// int32, int64, floats and complex numbers. Enqueued on `stream`.
absl::Status Cast(DType from, DType to, const void* x, void* out, int64_t count,
                  cudaStream_t stream);

}  // namespace interp::cuda
