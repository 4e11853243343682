// Dims of results, as the ops infer them, on dims of which some are unknown (-1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace interp {

using Dims = std::vector<int64_t>;

// "[-1,3,28,28]"
std::string DimsText(const Dims& dims);

// The product of dims [begin, end), at most the largest number; -1 when one of them is unknown.
int64_t ProductOf(const Dims& dims, size_t begin, size_t end);

// NumPy's rule: aligned at the end, dims of 1 stretch.
absl::StatusOr<Dims> BroadcastDims(const Dims& x, const Dims& y);

// The product of matrices in the last two dims (one where the rank is 1), others broadcast.
absl::StatusOr<Dims> MatmulDims(Dims x, Dims y, bool transpose_x, bool transpose_y);

// `shape` with 0 for dims kept as they are and -1 for one that follows from the others.
absl::StatusOr<Dims> ReshapeDims(const Dims& x, const std::vector<int32_t>& shape);

// A window that slides along one dim of a convolution or pooling.
struct Window {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t padding = 0;  // on both sides
  int64_t dilation = 1;
  bool ceil = false;  // counts a last window that reaches over the edge
};
// `padding_algorithm` is EXPLICIT, SAME or VALID; the latter two do not use Window::padding.
absl::StatusOr<int64_t> WindowCount(int64_t extent, Window window,
                                    absl::string_view padding_algorithm);

}  // namespace interp
