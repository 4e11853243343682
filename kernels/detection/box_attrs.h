// Attributes that rows of ops over boxes share.
#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

namespace interp {

struct IouAttrs {
  bool normalized;
};

struct BoxCoderAttrs {
  bool decode, normalized;
  int axis;
  std::vector<float> variance;
};

struct YoloAttrs {
  std::vector<int64_t> anchors;  // width, height, width, height, ...
  int64_t class_num, downsample_ratio;
  float conf_thresh, scale_x_y, iou_aware_factor;
  bool clip_bbox, iou_aware;

  int64_t num_anchors() const { return std::ssize(anchors) / 2; }
  int64_t channels() const { return num_anchors() * (class_num + (iou_aware ? 6 : 5)); }
};

struct PriorSize {
  double width, height;
};

struct PriorBoxAttrs {
  std::vector<PriorSize> sizes;  // of each cell, in the order of the output
  std::vector<float> variances;
  bool clip;
  float step_w, step_h, offset;
};

}  // namespace interp
