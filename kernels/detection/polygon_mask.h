// The cells of a square grid that polygons cover.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace interp {

// Sets the cells of `mask`, size * size of them row by row, that the polygon covers, to 1, and
// leaves the others. Points are x0, y0, x1, y1, ... in cells, and the last one leads back
// to the first. Concave and self-crossing polygons count by the even-odd rule. A boundary is taken
// to a fifth of a cell as COCO's tools do, whose masks these are. O(points * size * log(length)).
void CoverPolygon(absl::Span<const float> points, int64_t size, absl::Span<uint8_t> mask);

}  // namespace interp
