// prroi_pool, precise pooling of regions: the bins of both directions.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/detection/psroi_pool.h"

namespace interp {

struct PrRoiAttrs {
  RoiGrid grid;
};

inline PrRoiAttrs ReadPrRoiAttrs(AttrReader& reader) { return {ReadRoiGrid(reader)}; }

// A bin along one axis: where it lies, and the integrals over it of the interpolation's weights of
// the pixels from `first` on. A pixel has weight 1 at its place, and 0 at those of its neighbours
// and beyond.
template <typename T>
struct PrRoiSpan {
  T start, end;
  int64_t first;
  std::vector<T> weights;

  T length() const { return end - start; }
};

// The integral of a pixel's weight from its left neighbour to `t` behind it.
template <typename T>
T WeightUpTo(T t) {
  const T in = std::clamp(t, T{-1}, T{1});
  return in < 0 ? (in + 1) * (in + 1) / 2 : 1 - (1 - in) * (1 - in) / 2;
}

// Cuts [low, high] into `bins` of one length; one that ends before it starts has length 0.
template <typename T>
std::vector<PrRoiSpan<T>> PlacePrRoiSpans(T low, T high, int64_t bins, int64_t size) {
  std::vector<PrRoiSpan<T>> spans(static_cast<size_t>(bins));
  const T length = std::max(high - low, T{0}) / static_cast<T>(bins);
  for (int64_t i = 0; i < bins; ++i) {
    PrRoiSpan<T>& span = spans[i];
    span.start = low + length * static_cast<T>(i);
    span.end = span.start + length;
    span.first = ClampPixel(std::floor(span.start), size);
    const int64_t last = std::min(ClampPixel(std::ceil(span.end), size), size - 1);
    for (int64_t pixel = span.first; pixel <= last; ++pixel) {
      const T at = static_cast<T>(pixel);
      span.weights.push_back(WeightUpTo(span.end - at) - WeightUpTo(span.start - at));
    }
  }
  return spans;
}

// The bins of a region, [xmin, ymin, xmax, ymax] in the image, over a plane of `height` x `width`.
template <typename T>
struct PrRoiBins {
  PrRoiBins(const RoiGrid& grid, const T* box, int64_t height, int64_t width)
      : columns(PlacePrRoiSpans(box[0] * static_cast<T>(grid.spatial_scale),
                                box[2] * static_cast<T>(grid.spatial_scale), grid.width, width)),
        rows(PlacePrRoiSpans(box[1] * static_cast<T>(grid.spatial_scale),
                             box[3] * static_cast<T>(grid.spatial_scale), grid.height, height)) {}

  // Of every bin.
  T area() const { return columns[0].length() * rows[0].length(); }

  std::vector<PrRoiSpan<T>> columns, rows;
};

}  // namespace interp
