// What detectors find in a picture, as tensors and as drawings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/status.h"
#include "core/tensor.h"
#include "tools/drawing.h"

namespace interp {

struct Detection {
  int64_t label = 0;
  double score = 0;
  // Two: left upper and right lower corner of an upright box. More: corners of a polygon, in turn.
  std::vector<Point> points = {};
};

// The rows of what multiclass_nms, matrix_nms and their like give: label, score, x and y of each
// point; two points, or 4, 8, 12 or 16. Leading dims of 1 do not count. A single -1 in the place of
// all rows means that nothing was found, a negative label that the row is none. InvalidArgument for
// other forms and for labels that are no whole numbers.
absl::StatusOr<std::vector<Detection>> ReadDetections(const NamedTensor& tensor);

// Draws what lies in the picture at least in part, by rising score, so that the best stay visible:
// outlines in a colour for each label, with the label's name, or its number where `labels` has
// none, and the score. Points are in pixels. Returns how many were drawn. REQUIRES: no score is
// NaN.
int64_t DrawDetections(absl::Span<const Detection> detections, absl::Span<const std::string> labels,
                       Picture<uint8_t>& picture);

}  // namespace interp
