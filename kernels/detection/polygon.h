// Overlap of polygons, for detections that are not axis-aligned.
#pragma once

#include "absl/types/span.h"

namespace interp {

// Most corners a polygon of a detection may have.
inline constexpr int kMaxCorners = 16;

// Intersection over union of two polygons given as x0, y0, x1, y1, ...; concave and self-crossing
// ones count by the even-odd rule. 0 when one has no area or a coordinate is not finite.
// REQUIRES: an even number of coordinates, at most 2 * kMaxCorners each.
double PolygonOverlap(absl::Span<const double> a, absl::Span<const double> b);

}  // namespace interp
