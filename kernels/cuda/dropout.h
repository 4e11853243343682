// dropout and its gradient.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/random_numbers.h"

namespace interp::cuda {

struct DropoutArguments {
  const void* x = nullptr;
  int64_t size = 0;
  float probability = 0.5f;  // of dropping an element
  float divisor = 1;         // of elements that are kept
  RandomNumbers random = {};
  // Other than 0: elements take the numbers of a std::mt19937_64 of that seed, one after the other.
  int32_t seed = 0;
  const void* seed_data = nullptr;  // an int32 or int64 on the GPU that wins over `seed`
  DType seed_dtype = DType::kInt32;
  void* out = nullptr;      // may be x
  uint8_t* mask = nullptr;  // 1 where an element was kept; may be null
};

// out = x / divisor where it is kept and 0 elsewhere; the same elements as on the host. float32,
// float16 or bfloat16. Enqueued on `stream`.
absl::Status Dropout(DType dtype, const DropoutArguments& arguments, cudaStream_t stream);

// out[i] = x[i] factor / divisor where mask[i] is not 0, and 0 elsewhere. Without a mask,
// everywhere the former. `out` may be x.
struct MaskedScaleArguments {
  const void* x = nullptr;
  const uint8_t* mask = nullptr;
  float factor = 1;
  float divisor = 1;
  void* out = nullptr;
  int64_t size = 0;
};
absl::Status MaskedScale(DType dtype, const MaskedScaleArguments& arguments, cudaStream_t stream);

}  // namespace interp::cuda
