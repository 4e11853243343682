// Bilinear sampling of images, blocks of points at a time, in loops that the compiler makes vectors
// of. The sums are those over the neighbours of single points (grid_sampler.h).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/detection/grid_sampler.h"

namespace interp {

// Points of one image, and their four neighbours: left and right in the upper row, then in the
// lower.
template <typename T>
class GridBlock {
 public:
  static constexpr int64_t kMost = 64;  // points

  // Whether the op samples like this. Offsets are 32 bits wide.
  static bool Serves(const Shape& x, const GridAttrs& attrs) {
    if (x.rank() != 4 || attrs.nearest) return false;
    const int64_t plane = x[2] * x[3];
    return plane > 0 && plane < std::numeric_limits<int32_t>::max();
  }

  GridBlock(int64_t height, int64_t width, const GridAttrs& attrs)
      : height_(static_cast<int32_t>(height)), width_(static_cast<int32_t>(width)), attrs_(attrs) {}

  // `points` has x and y of each. REQUIRES: count <= kMost.
  void Locate(const T* points, int64_t count) {
    count_ = count;
    Side left;
    Side right;
    Side upper;
    Side lower;
    FindSides(points, width_, left, right);
    FindSides(points + 1, height_, upper, lower);
    Join(upper, left, 0);
    Join(upper, right, 1);
    Join(lower, left, 2);
    Join(lower, right, 3);
  }

  // Samples a channel at the points.
  void Sample(const T* in, T* out) const {
    for (int64_t i = 0; i < count_; ++i) out[i] = Value(in, 0, i) * weight_[0][i];
    for (int k = 1; k < 4; ++k) {
      for (int64_t i = 0; i < count_; ++i) out[i] += Value(in, k, i) * weight_[k][i];
    }
  }

 private:
  // Neighbours on one side along an axis; index 0 and not inside: none.
  struct Side {
    int32_t index[kMost];
    int32_t inside[kMost];
    T weight[kMost];
  };

  void FindSides(const T* coordinates, int32_t size, Side& before, Side& behind) const {
    const T last = static_cast<T>(size - 1);
    T position[kMost];
    for (int64_t i = 0; i < count_; ++i) position[i] = PixelOf(coordinates[2 * i], size, attrs_);
    for (int64_t i = 0; i < count_; ++i) {
      const T low = std::floor(position[i]);
      Set(low, low + 1 - position[i], last, i, before);
      Set(low + 1, position[i] - low, last, i, behind);
    }
  }

  static void Set(T position, T weight, T last, int64_t i, Side& side) {
    const bool inside = position >= 0 && position <= last;
    side.inside[i] = inside ? 1 : 0;
    side.index[i] = static_cast<int32_t>(inside ? position : T{0});
    side.weight[i] = weight;
  }

  void Join(const Side& row, const Side& column, int k) {
    for (int64_t i = 0; i < count_; ++i) {
      inside_[k][i] = row.inside[i] & column.inside[i];
      offset_[k][i] = inside_[k][i] * (row.index[i] * width_ + column.index[i]);
      weight_[k][i] = column.weight[i] * row.weight[i];
    }
  }

  T Value(const T* in, int k, int64_t i) const {
    const T value = in[offset_[k][i]];
    return inside_[k][i] != 0 ? value : T{0};
  }

  const int32_t height_;
  const int32_t width_;
  const GridAttrs attrs_;
  int64_t count_ = 0;
  int32_t offset_[4][kMost];
  int32_t inside_[4][kMost];
  T weight_[4][kMost];
};

}  // namespace interp
