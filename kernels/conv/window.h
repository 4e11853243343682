// Sliding windows: the attributes that convolutions and pooling share, and the numbers per spatial
// axis that follow from them and from a shape.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/attr_reader.h"
#include "core/status.h"

namespace interp::nn {

enum class PaddingAlgorithm : int8_t { kExplicit, kSame, kValid };

struct WindowAttrs {
  std::vector<int64_t> strides;
  std::vector<int64_t> paddings;   // one per axis, or begin and end of each
  std::vector<int64_t> dilations;  // empty: 1
  PaddingAlgorithm padding = PaddingAlgorithm::kExplicit;
};

// Reads strides, paddings, padding_algorithm and, with `dilations`, dilations. `spatial_rank` is
// that of the op, for the defaults.
WindowAttrs ReadWindow(AttrReader& reader, int spatial_rank, bool dilations);

inline constexpr int kMaxSpatialRank = 3;

// One spatial axis of a window that slides.
struct WindowAxis {
  int64_t in = 1;
  int64_t out = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;

  // Input positions a window covers, holes included.
  int64_t extent() const { return dilation * (kernel - 1) + 1; }
  bool operator==(const WindowAxis&) const = default;
};

// Outputs [begin, end) along an axis whose window position `k` lies inside the input.
struct OutputRange {
  int64_t begin = 0;
  int64_t end = 0;
};
OutputRange ValidOutputs(const WindowAxis& axis, int64_t k);

// The positions of a window along an axis that lie inside the input for some output. Those around
// them see padding alone, as all but the middle row of a 3x3 filter over a line of pixels.
struct Taps {
  int64_t first = 0;
  int64_t count = 0;  // at least one
  bool all = false;
};
Taps TapsOf(const WindowAxis& axis);

struct Window {
  int rank = 0;  // spatial
  std::array<WindowAxis, kMaxSpatialRank> axes = {};
  WindowAxis& operator[](int i) { return axes[i]; }
  const WindowAxis& operator[](int i) const { return axes[i]; }
  bool operator==(const Window&) const = default;
};

// Fills everything but `out`. SAME pads so that out = ceil(in / stride) and, as Paddle does, sets
// dilation to 1; VALID does not pad. Errors: lists of the wrong length, values out of range.
absl::StatusOr<Window> ResolveWindow(const WindowAttrs& attrs, absl::Span<const int64_t> in,
                                     absl::Span<const int64_t> kernel);

// Sets `out` of each axis of a convolution or pooling window: how often it fits, rounded up with
// `ceil_mode`. The last window may stick out of the padded input. Error: it never fits.
absl::Status FitWindow(Window& window, bool ceil_mode);

}  // namespace interp::nn
