// deformable_psroi_pooling: attributes, shapes and the places of samples, for both directions.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op_def.h"

namespace interp {

struct DeformablePsRoiAttrs {
  bool no_trans = false;
  float spatial_scale = 1;
  int64_t output_dim = 1;
  int64_t group_height = 1, group_width = 1;
  int64_t pooled_height = 1, pooled_width = 1;
  int64_t part_height = 1, part_width = 1;
  int64_t samples = 4;  // per bin and axis
  float trans_std = 0.1f;
};

DeformablePsRoiAttrs ReadDeformablePsRoiAttrs(AttrReader& reader);

// The first inputs of the op and of its gradient.
inline constexpr int kPsRoiInput = 0;
inline constexpr int kPsRoiRois = 1;
inline constexpr int kPsRoiTrans = 2;

// Checks Input [N,C,H,W], ROIs [R,4] and Trans [R,2K,part_height,part_width]; the shape of Output.
absl::StatusOr<Shape> ResolveDeformablePsRoi(const OpContext& ctx);

// Where one element of Output is taken from. `trans` is the position in Trans of its offset in x,
// that in y is `trans_step` later; -1: none.
template <typename T>
struct DeformableBin {
  int64_t channel;
  int64_t trans, trans_step;
  T x, y;            // of the first sample
  T step_x, step_y;  // to the next
  T width, height;   // of the region
};

// Four neighbours of a sample in a plane, and how much each counts.
template <typename T>
struct DeformableSample {
  int64_t x0, x1, y0, y1;
  T dx, dy;  // from x0 and y0
};

// The bin of element i of Output, whose shape is `out`.
template <typename T>
DeformableBin<T> PlaceDeformableBin(const OpContext& ctx, const Shape& out, int64_t i) {
  const auto& a = ctx.attrs<DeformablePsRoiAttrs>();
  const int64_t w = i % out[3], h = i / out[3] % out[2], c = i / (out[2] * out[3]) % out[1];
  const int64_t region = i / (out[1] * out[2] * out[3]);
  const T* const box = ctx.input(kPsRoiRois).data<T>() + 4 * region;
  const T scale = static_cast<T>(a.spatial_scale), half = static_cast<T>(0.5);
  const T left = std::round(box[0]) * scale - half;
  const T top = std::round(box[1]) * scale - half;
  const T least = static_cast<T>(0.1);
  const T width = std::max((std::round(box[2]) + 1) * scale - half - left, least);
  const T height = std::max((std::round(box[3]) + 1) * scale - half - top, least);
  const T bin_width = width / static_cast<T>(out[3]), bin_height = height / static_cast<T>(out[2]);
  DeformableBin<T> bin = {};
  const int64_t group_y = std::min(h * a.group_height / out[2], a.group_height - 1);
  const int64_t group_x = std::min(w * a.group_width / out[3], a.group_width - 1);
  bin.channel = (c * a.group_height + group_y) * a.group_width + group_x;
  bin.trans = -1;
  T shift_x = 0, shift_y = 0;
  if (!a.no_trans) {
    const Shape& trans = ctx.input(kPsRoiTrans).shape;
    const int64_t classes = trans[1] / 2, label = c / std::max<int64_t>(out[1] / classes, 1);
    bin.trans_step = a.part_height * a.part_width;
    bin.trans = (region * classes + label) * 2 * bin.trans_step +
                h * a.part_height / out[2] * a.part_width + w * a.part_width / out[3];
    const T* const offsets = ctx.input(kPsRoiTrans).data<T>();
    shift_x = offsets[bin.trans] * static_cast<T>(a.trans_std);
    shift_y = offsets[bin.trans + bin.trans_step] * static_cast<T>(a.trans_std);
  }
  bin.x = static_cast<T>(w) * bin_width + left + shift_x * width;
  bin.y = static_cast<T>(h) * bin_height + top + shift_y * height;
  bin.step_x = bin_width / static_cast<T>(a.samples);
  bin.step_y = bin_height / static_cast<T>(a.samples);
  bin.width = width;
  bin.height = height;
  return bin;
}

// Calls body(sample) for the samples of a bin that lie in an image of `height` x `width`; how many.
template <typename T, typename Body>
int64_t ForEachDeformableSample(const DeformableBin<T>& bin, int64_t samples, int64_t height,
                                int64_t width, const Body& body) {
  const T right = static_cast<T>(width) - static_cast<T>(0.5);
  const T bottom = static_cast<T>(height) - static_cast<T>(0.5);
  int64_t count = 0;
  for (int64_t i = 0; i < samples * samples; ++i) {
    T x = bin.x + static_cast<T>(i % samples) * bin.step_x;
    T y = bin.y + static_cast<T>(i / samples) * bin.step_y;
    if (!(x >= T{-0.5} && x <= right && y >= T{-0.5} && y <= bottom)) continue;
    x = std::clamp(x, T{0}, static_cast<T>(width - 1));
    y = std::clamp(y, T{0}, static_cast<T>(height - 1));
    DeformableSample<T> sample = {};
    // Once more, as the last position of a large image may have been rounded up.
    sample.x0 = std::min(static_cast<int64_t>(std::floor(x)), width - 1);
    sample.x1 = std::min(static_cast<int64_t>(std::ceil(x)), width - 1);
    sample.y0 = std::min(static_cast<int64_t>(std::floor(y)), height - 1);
    sample.y1 = std::min(static_cast<int64_t>(std::ceil(y)), height - 1);
    sample.dx = x - static_cast<T>(sample.x0);
    sample.dy = y - static_cast<T>(sample.y0);
    body(sample);
    ++count;
  }
  return count;
}

}  // namespace interp
