// roi_align: attributes and where a region is sampled, for both directions.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/detection/roi.h"

namespace interp {

// Samples per bin and axis beyond which a region can only be a mistake.
inline constexpr double kMaxRoiSamples = 1 << 14;

struct RoiAlignAttrs {
  RoiGrid grid;
  int64_t sampling_ratio;
  bool aligned;
};

inline RoiAlignAttrs ReadRoiAlignAttrs(AttrReader& reader) {
  const RoiAlignAttrs attrs = {.grid = ReadRoiGrid(reader),
                               .sampling_ratio = reader.Int("sampling_ratio", -1),
                               .aligned = reader.Bool("aligned", false)};
  if (static_cast<double>(attrs.sampling_ratio) > kMaxRoiSamples) {
    reader.Fail(absl::StrCat("attribute 'sampling_ratio' is ", attrs.sampling_ratio));
  }
  return attrs;
}

// A sample's two neighbours on one axis. Samples more than a pixel outside count as zero.
template <typename T>
struct RoiSample {
  int64_t low, high;
  T low_weight, high_weight;
  bool inside;
};

template <typename T>
RoiSample<T> SampleAt(T position, int64_t size) {
  if (!(position >= -1) || !(position <= static_cast<T>(size))) return {0, 0, 0, 0, false};
  const T clamped = std::max(position, T{0});
  const auto low = static_cast<int64_t>(clamped);
  if (low >= size - 1) return {size - 1, size - 1, 0, 1, true};
  const T low_weight = static_cast<T>(low + 1) - clamped;
  return {low, low + 1, low_weight, 1 - low_weight, true};
}

// The samples of all bins on one axis, bin by bin.
template <typename T>
struct AxisSamples {
  std::vector<RoiSample<T>> samples;
  int64_t per_bin = 0;

  absl::Status Place(T start, T end, T least, int64_t bins, int64_t size,
                     const RoiAlignAttrs& attrs) {
    const T length = std::max(end - start, least);
    const T bin = length / static_cast<T>(bins);
    const double wanted = attrs.sampling_ratio > 0 ? static_cast<double>(attrs.sampling_ratio)
                                                   : std::ceil(static_cast<double>(bin));
    if (!(std::abs(wanted) <= kMaxRoiSamples)) {
      return InvalidArgument("a region of interest is ", length, " pixels long");
    }
    per_bin = std::max<int64_t>(static_cast<int64_t>(wanted), 0);
    samples.clear();
    for (int64_t b = 0; b < bins; ++b) {
      for (int64_t i = 0; i < per_bin; ++i) {
        const T in_bin = (static_cast<T>(i) + T{0.5}) / static_cast<T>(per_bin);
        samples.push_back(SampleAt(start + bin * (static_cast<T>(b) + in_bin), size));
      }
    }
    return absl::OkStatus();
  }
};

// The samples of a region on both axes.
template <typename T>
struct RegionSamples {
  AxisSamples<T> rows, columns;

  // `box` is x1, y1, x2, y2; a region has at least `least` pixels on each axis.
  absl::Status Place(const RoiAlignAttrs& attrs, const T* box, T least, int64_t height,
                     int64_t width) {
    const T scale = attrs.grid.spatial_scale;
    const T offset = attrs.aligned ? T{0.5} : T{0};
    INTERP_RETURN_IF_ERROR(columns.Place(box[0] * scale - offset, box[2] * scale - offset, least,
                                         attrs.grid.width, width, attrs));
    return rows.Place(box[1] * scale - offset, box[3] * scale - offset, least, attrs.grid.height,
                      height, attrs);
  }
};

}  // namespace interp
