// psroi_pool, position-sensitive pooling of regions: attributes, shapes and bins of both
// directions.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/detection/roi.h"

namespace interp {

struct PsRoiAttrs {
  RoiGrid grid;
  int64_t output_channels = 1;
};

inline PsRoiAttrs ReadPsRoiAttrs(AttrReader& reader) {
  const PsRoiAttrs attrs = {ReadRoiGrid(reader), reader.Int("output_channels", 1)};
  if (attrs.output_channels <= 0) {
    reader.Fail(absl::StrCat("attribute 'output_channels' is ", attrs.output_channels,
                             ", expected more than 0"));
  }
  return attrs;
}

// The shape of Out, [R, output_channels, pooled_height, pooled_width]. Checks X, which has a
// channel for each element of a region.
inline absl::StatusOr<Shape> InferPsRoiShape(const PsRoiAttrs& attrs, const Shape& x,
                                             const Shape& rois) {
  INTERP_ASSIGN_OR_RETURN(Shape out, InferRoiShape(x, rois, attrs.grid));
  out[1] = attrs.output_channels;
  if (!out.CheckedNumel().has_value() || x[1] != out.numel(1, 4)) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected ",
                           attrs.output_channels, " x ", attrs.grid.height, " x ", attrs.grid.width,
                           " channels");
  }
  return out;
}

// The pixels of one bin, within the image; empty where an end is not beyond its begin.
struct PsRoiBin {
  int64_t top, bottom, left, right;
  int64_t area() const {
    return std::max<int64_t>(bottom - top, 0) * std::max<int64_t>(right - left, 0);
  }
};

// Pixel `x` within [0, size]; NaN is 0.
template <typename T>
int64_t ClampPixel(T x, int64_t size) {
  if (!(x > 0)) return 0;
  return x < static_cast<T>(size) ? static_cast<int64_t>(x) : size;
}

// Bin (h, w) of region `box` over an image of `height` x `width` pixels. The arithmetic is Paddle's
// to the last bit: which pixels count hangs on it.
template <typename T>
PsRoiBin PlacePsRoiBin(const RoiGrid& grid, const T* box, int64_t h, int64_t w, int64_t height,
                       int64_t width) {
  const T scale = static_cast<T>(grid.spatial_scale);
  const T x0 = std::round(box[0]) * scale;
  const T y0 = std::round(box[1]) * scale;
  const T x1 = (std::round(box[2]) + T{1}) * scale;
  const T y1 = (std::round(box[3]) + T{1}) * scale;
  const T bin_height = std::max(y1 - y0, static_cast<T>(0.1)) / static_cast<T>(grid.height);
  const T bin_width = std::max(x1 - x0, static_cast<T>(0.1)) / static_cast<T>(grid.width);
  return {ClampPixel(std::floor(bin_height * static_cast<T>(h) + y0), height),
          ClampPixel(std::ceil(bin_height * static_cast<T>(h + 1) + y0), height),
          ClampPixel(std::floor(bin_width * static_cast<T>(w) + x0), width),
          ClampPixel(std::ceil(bin_width * static_cast<T>(w + 1) + x0), width)};
}

}  // namespace interp
