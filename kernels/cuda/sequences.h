// What kernels over sequences have in common. Included by `.cu` files alone.
#pragma once

#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {

// The sequence that `row` is in: offsets[s] <= row < offsets[s + 1].
// REQUIRES: offsets ascend from 0 to more than `row`.
__device__ inline int64_t SequenceOfRow(const int64_t* offsets, int64_t count, int64_t row) {
  int64_t low = 0;
  int64_t high = count;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (offsets[middle] <= row ? low : high) = middle;
  }
  return low;
}

// Calls function(Type<T>()) for float32 and float64, which ops of sequences have.
template <typename Function>
absl::Status WithWideFloats(absl::string_view what, DType dtype, Function function) {
  if (dtype == DType::kFloat32) return function(Type<float>());
  if (dtype == DType::kFloat64) return function(Type<double>());
  return Unimplemented(what, " of ", Name(dtype), " on a GPU");
}

}  // namespace interp::cuda
