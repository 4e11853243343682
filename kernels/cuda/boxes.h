// Ops over boxes of detection nets. Boxes are four numbers: left, top, right, bottom.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// All arrays are of one dtype, float32 or float64, but those that say otherwise; what is computed
// is enqueued on `stream`.

struct SimilarityArguments {
  const void* x = nullptr;  // `rows` boxes
  const void* y = nullptr;  // `columns` boxes
  void* out = nullptr;      // [rows, columns]
  int64_t rows = 0;
  int64_t columns = 0;
  bool normalized = true;  // else the last pixel belongs to a box
};
// Intersections over unions.
absl::Status BoxSimilarity(DType dtype, const SimilarityArguments& arguments, cudaStream_t stream);

struct BoxCoderArguments {
  const void* priors = nullptr;     // boxes
  const void* variances = nullptr;  // as many times four; null: `variance` for all
  float variance[4] = {1, 1, 1, 1};
  const void* target = nullptr;  // `rows` boxes, or [rows, columns] offsets to decode
  void* out = nullptr;           // [rows, columns] times four
  int64_t rows = 0;
  int64_t columns = 0;
  bool decode = false;
  bool priors_of_rows = false;  // of decoding; else a prior belongs to a column
  bool normalized = true;
};
// Between boxes and their offsets from prior boxes, in centre and size.
absl::Status CodeBoxes(DType dtype, const BoxCoderArguments& arguments, cudaStream_t stream);

struct PriorBoxArguments {
  // Of the device: half of width and height of each prior, as the bits of doubles.
  const int64_t* halves = nullptr;
  int64_t priors = 0;  // of a cell
  int64_t height = 0;  // cells
  int64_t width = 0;
  double image_height = 1;
  double image_width = 1;
  double step_height = 1;  // from a cell to the next, in pixels
  double step_width = 1;
  double offset = 0.5;  // of the centre in a cell, in steps
  bool clip = false;    // boxes to [0, 1]
  float variance[4] = {1, 1, 1, 1};
  void* boxes = nullptr;      // [height, width, priors, 4], as fractions of the image
  void* variances = nullptr;  // the same
};
// Boxes of some sizes around the centre of each cell, each with the four variances.
absl::Status PriorBoxes(DType dtype, const PriorBoxArguments& arguments, cudaStream_t stream);

inline constexpr int kMostYoloAnchors = 16;

struct YoloBoxArguments {
  // [images, planes of all anchors, height, width]; with iou_aware, a plane of overlaps an anchor
  // comes first, then 5 + classes planes an anchor.
  const void* x = nullptr;
  const int32_t* image_sizes = nullptr;  // height and width of each image
  void* boxes = nullptr;                 // [images, anchors, height, width, 4]
  void* scores = nullptr;                // [images, anchors, height, width, classes]
  int64_t images = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t classes = 0;
  int64_t downsample_ratio = 32;
  int anchors = 0;                                  // at most kMostYoloAnchors
  int64_t anchor_sizes[2 * kMostYoloAnchors] = {};  // width, height, width, ...
  float threshold = 0;                              // of confidences: below it all is 0
  float scale_x_y = 1;
  bool clip = true;  // boxes to their image
  bool iou_aware = false;
  float iou_aware_factor = 0.5f;
};
// Boxes and class scores of an output map of a YOLO net.
absl::Status YoloBoxes(DType dtype, const YoloBoxArguments& arguments, cudaStream_t stream);

}  // namespace interp::cuda
