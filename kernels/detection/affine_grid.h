// affine_grid: the attributes, shapes and coordinates of both directions.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "kernels/util/shape_args.h"

namespace interp {

struct AffineGridAttrs {
  IntList output_shape;
  bool align_corners = true;
};

AffineGridAttrs ReadAffineGridAttrs(AttrReader& reader);

// Slots that both directions have.
constexpr int kAffineTheta = 0;
constexpr int kAffineOutputShape = 1;

// The image shape [N,C,H,W] or [N,C,D,H,W]: N is that of Theta, the rest comes from OutputShape or
// the attribute, of which N and C count for nothing. Checks Theta.
absl::StatusOr<IntList> AffineImageShape(const OpContext& ctx);

// From -1 to 1 in `count` steps: the centres of the first and last pixel, or their outer edges.
// One pixel with aligned corners has no step: NaN, as in Paddle.
template <typename T>
std::vector<T> AffineCoordinates(int64_t count, bool align_corners) {
  const T n = static_cast<T>(count);
  const T step = align_corners ? T{2} / (n - 1) : T{2} / n;
  const T first = align_corners ? T{-1} : T{-1} * (n - 1) / n;
  std::vector<T> coordinates(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) coordinates[i] = first + static_cast<T>(i) * step;
  return coordinates;
}

// The base points of an image: of pixel i of a volume or plane, x, y (, z) and 1.
template <typename T>
class AffinePoints {
 public:
  // REQUIRES: `image` is [N,C,H,W] or [N,C,D,H,W].
  AffinePoints(absl::Span<const int64_t> image, bool align_corners) {
    for (size_t axis = image.size() - 1; axis >= 2; --axis) {
      axes_.push_back(AffineCoordinates<T>(image[axis], align_corners));
    }
  }
  int rank() const { return static_cast<int>(axes_.size()); }
  int64_t size() const {
    int64_t pixels = 1;
    for (const std::vector<T>& axis : axes_) pixels *= static_cast<int64_t>(axis.size());
    return pixels;
  }
  // Writes rank() + 1 values.
  void Get(int64_t pixel, T* point) const {
    for (const std::vector<T>& axis : axes_) {
      const int64_t size = static_cast<int64_t>(axis.size());
      *point++ = axis[pixel % size];
      pixel /= size;
    }
    *point = 1;
  }

 private:
  std::vector<std::vector<T>> axes_;  // width first
};

}  // namespace interp
