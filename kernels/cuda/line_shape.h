// Lines: the elements of a dense tensor along one dimension, as kernels take them.
#pragma once

#include <cstdint>

namespace interp::cuda {

// A tensor as [outer, length, inner]: outer * inner lines, whose elements are `inner` apart.
struct LineShape {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;

  constexpr int64_t count() const { return outer * inner; }
  constexpr int64_t numel() const { return outer * length * inner; }
  // Where line `index` starts.
  constexpr int64_t Start(int64_t index) const {
    return index / inner * length * inner + index % inner;
  }
};

}  // namespace interp::cuda
