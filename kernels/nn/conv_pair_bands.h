// Bands of rows of the image between two convolutions, see pointwise_depthwise.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/algorithms.h"
#include "kernels/nn/conv_problem.h"

namespace interp::nn {

inline int64_t RowFloats(const ConvProblem& depthwise) {
  return depthwise.window[1].in * depthwise.in_channels;
}

// Rows of the image between that output rows [first, last) reach, from `begin` to `end`.
inline std::pair<int64_t, int64_t> ReachedRows(const WindowAxis& axis, int64_t first,
                                               int64_t last) {
  const int64_t begin = first * axis.stride - axis.pad_begin;
  const int64_t end = (last - 1) * axis.stride - axis.pad_begin + axis.kernel;
  const int64_t low = std::clamp<int64_t>(begin, 0, axis.in);
  return {low, std::clamp(end, low, axis.in)};
}

// Output rows of a band; 0: bands do not pay. Measured on AVX-512 with an L2 cache of 2 MiB: below
// a megabyte the image between stays in the cache by itself.
inline int64_t BandOf(const ConvProblem& depthwise, Algorithms algorithms, int num_threads) {
  constexpr int64_t kLargeBytes = int64_t{1} << 20;
  constexpr int64_t kBandBytes = int64_t{256} << 10;
  const WindowAxis& axis = depthwise.window[0];
  const int64_t row_bytes = RowFloats(depthwise) * int64_t{sizeof(float)};
  if (algorithms != Algorithms::kFast || row_bytes * axis.in < kLargeBytes) return 0;
  const int64_t band = std::max<int64_t>(kBandBytes / row_bytes / axis.stride, 1);
  return axis.out >= 2 * band * num_threads ? band : 0;
}

inline int64_t BandInRows(const ConvProblem& depthwise, int64_t band) {
  return band * depthwise.window[0].stride;
}

}  // namespace interp::nn
