// yolov3_loss: attributes, shapes and the places of predictions, for both directions.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/op_def.h"

namespace interp {

struct YoloLossAttrs {
  std::vector<int64_t> anchors;  // width, height, width, height, ...
  std::vector<int64_t> mask;     // those that this output map predicts with
  int64_t class_num, downsample_ratio;
  float ignore_thresh, scale_x_y;
  bool use_label_smooth;

  int64_t num_anchors() const { return std::ssize(anchors) / 2; }
  int64_t num_masks() const { return std::ssize(mask); }
  int64_t channels() const { return num_masks() * (5 + class_num); }
  // What a class should be where it is the label, and elsewhere.
  double positive() const { return use_label_smooth ? 1 - Smoothing() : 1; }
  double negative() const { return use_label_smooth ? Smoothing() : 0; }

 private:
  double Smoothing() const { return std::min(1.0 / static_cast<double>(class_num), 1.0 / 40); }
};

YoloLossAttrs ReadYoloLossAttrs(AttrReader& reader);

// The first inputs of yolov3_loss and of its gradient.
inline constexpr int kYoloX = 0;
inline constexpr int kYoloBox = 1;
inline constexpr int kYoloLabel = 2;
inline constexpr int kYoloScore = 3;

// Checks those inputs: X [N,A*(5+C),H,H], GTBox [N,B,4], GTLabel and GTScore [N,B].
absl::Status CheckYoloInputs(const InferContext& ctx);

// Centre and size, relative to the image.
template <typename T>
struct YoloBox {
  T x, y, w, h;
};

// X as the loops see it: planes of cells.
struct YoloMap {
  int64_t masks, grid, cells, classes;

  YoloMap(const YoloLossAttrs& attrs, const Shape& x)
      : masks(attrs.num_masks()), grid(x[2]), cells(x[2] * x[3]), classes(attrs.class_num) {}

  // Where the prediction of image n, mask m and cell begins: x, y, w, h, objectness and classes
  // follow, `cells` apart.
  int64_t at(int64_t n, int64_t m, int64_t cell) const {
    return (n * masks + m) * (5 + classes) * cells + cell;
  }
  // Position in ObjectnessMask.
  int64_t mask_at(int64_t n, int64_t m, int64_t cell) const {
    return (n * masks + m) * cells + cell;
  }
};

// The cell of the centre of a box; InvalidArgument where that is outside the image.
template <typename T>
absl::StatusOr<int64_t> CellOf(const YoloMap& map, const YoloBox<T>& box) {
  if (box.x >= 0 && box.x < 1 && box.y >= 0 && box.y < 1) {
    const int64_t column = static_cast<int64_t>(box.x * static_cast<T>(map.grid));
    const int64_t row = static_cast<int64_t>(box.y * static_cast<T>(map.grid));
    if (column < map.grid && row < map.grid) return row * map.grid + column;
  }
  return InvalidArgument("input 'GTBox' has a box with the centre ", box.x, ", ", box.y,
                         ", expected at least 0 and less than 1");
}

// What the location of a prediction should be: of x and y the part of a cell, of w and h the
// logarithm of what an anchor is to be multiplied by. `scale` weighs small boxes more.
template <typename T>
struct YoloTarget {
  T x, y, w, h, scale;
};

template <typename T>
YoloTarget<T> MakeYoloTarget(const YoloLossAttrs& attrs, const YoloMap& map, const YoloBox<T>& box,
                             int64_t anchor, int64_t cell, T score) {
  const T grid = static_cast<T>(map.grid);
  const T size = static_cast<T>(attrs.downsample_ratio * map.grid);
  return {box.x * grid - static_cast<T>(cell % map.grid),
          box.y * grid - static_cast<T>(cell / map.grid),
          std::log(box.w * size / static_cast<T>(attrs.anchors[2 * anchor])),
          std::log(box.h * size / static_cast<T>(attrs.anchors[2 * anchor + 1])),
          (T{2} - box.w * box.h) * score};
}

}  // namespace interp
