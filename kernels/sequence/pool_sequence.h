// The pooling of one sequence for the ops that do more with the result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/sequence/sequence_pool_attrs.h"

namespace interp {

// out[0, width) is the sum of `count` rows, their average or their sum / sqrt(count); 0 of none.
// REQUIRES: `pooling` is one of the three.
template <typename T>
void PoolSequence(Pooling pooling, const T* rows, int64_t count, int64_t width, T* out) {
  std::fill_n(out, width, T{0});
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t k = 0; k < width; ++k) out[k] += rows[row * width + k];
  }
  if (pooling == Pooling::kSum || count == 0) return;
  const T length = static_cast<T>(count);
  const T factor = T{1} / (pooling == Pooling::kAverage ? length : std::sqrt(length));
  for (int64_t k = 0; k < width; ++k) out[k] *= factor;
}

}  // namespace interp
