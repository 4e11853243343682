// spp, spatial pyramid pooling: the attributes and the grids of both directions.
#pragma once

#include <algorithm>
#include <string>

#include "core/attr_reader.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp::nn {

struct SppAttrs {
  int64_t levels = 0;
  bool max = true;
};

SppAttrs ReadSppAttrs(AttrReader& reader);

// Bins of one level in all channels before it: 1 + 4 + 16 + ...
inline int64_t SppBins(int64_t levels) { return ((int64_t{1} << (2 * levels)) - 1) / 3; }

// InvalidArgument unless X is a batch of images; the shape of Out.
absl::StatusOr<Shape> ResolveSpp(const SppAttrs& attrs, const Shape& x);

// One axis of one level: `bins` windows of equal size, padded by about the same on both ends.
struct SppAxis {
  int64_t size = 0;    // of the image
  int64_t kernel = 1;  // and the stride
  int64_t padding = 0;

  SppAxis(int64_t image, int64_t bins)
      : size(image), kernel((image + bins - 1) / bins), padding((kernel * bins - image + 1) / 2) {}

  int64_t begin(int64_t bin) const { return std::max<int64_t>(bin * kernel - padding, 0); }
  int64_t end(int64_t bin) const { return std::min(bin * kernel - padding + kernel, size); }
};

// Calls body(bin of the plane's output, first row, last row, first column, last column), ends
// exclusive, for the bins of one level; a bin may lie outside the image.
template <typename Body>
void ForEachSppBin(int64_t level, const Shape& x, const Body& body) {
  const int64_t bins = int64_t{1} << level;
  const SppAxis rows(x[2], bins), columns(x[3], bins);
  for (int64_t y = 0; y < bins; ++y) {
    for (int64_t i = 0; i < bins; ++i) {
      body(y * bins + i, rows.begin(y), rows.end(y), columns.begin(i), columns.end(i));
    }
  }
}

}  // namespace interp::nn
