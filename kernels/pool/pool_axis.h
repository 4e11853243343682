// How the windows of pooling lie over images, without attributes and tensors; for every place.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/conv/window.h"

namespace interp::nn {

enum class PoolKind : int8_t { kMax, kAverage };

// How windows lie over one axis.
struct PoolAxis {
  WindowAxis window;
  bool adaptive = false;  // output i covers [floor(i in / out), ceil((i + 1) in / out))

  struct Range {
    int64_t begin = 0;  // input positions covered
    int64_t end = 0;
    int64_t divisor = 1;  // positions that count in an average: with padding unless `exclusive`
  };
  constexpr Range Cover(int64_t i, bool exclusive) const {
    if (adaptive) {
      const int64_t begin = i * window.in / window.out;
      const int64_t end = ((i + 1) * window.in + window.out - 1) / window.out;
      return {begin, end, end - begin};
    }
    const int64_t begin = i * window.stride - window.pad_begin;
    // Like Paddle, padding at the end counts only as far as there is padding at the beginning.
    const int64_t end = std::min(begin + window.kernel, window.in + window.pad_begin);
    Range range = {std::max<int64_t>(begin, 0), std::min(end, window.in), end - begin};
    if (exclusive) range.divisor = range.end - range.begin;
    if (range.end < range.begin) range.begin = range.end = 0;  // all padding
    return range;
  }
};

struct Pool {
  PoolKind kind = PoolKind::kMax;
  bool exclusive = true;
  int64_t batch = 1;
  int64_t channels = 1;
  PoolAxis axes[3];  // depth, height, width; size 1 where the image has fewer
};

}  // namespace interp::nn
