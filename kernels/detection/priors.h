// What prior_box, density_prior_box and anchor_generator have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/attr_reader.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// Attribute 'variances': four positive numbers.
inline std::vector<float> ReadVariances(AttrReader& reader) {
  std::vector<float> variances = reader.Floats("variances", {0.1f, 0.1f, 0.2f, 0.2f});
  if (variances.size() != 4) reader.Fail("attribute 'variances' has not four values");
  return variances;
}

inline absl::Status CheckImageAndFeatures(const Tensor& features, const Tensor& image) {
  if (features.shape.rank() != 4) {
    return InvalidArgument("input 'Input' has shape ", ToString(features.shape),
                           ", expected 4 dims (NCHW)");
  }
  if (image.shape.rank() != 4) {
    return InvalidArgument("input 'Image' has shape ", ToString(image.shape),
                           ", expected 4 dims (NCHW)");
  }
  return absl::OkStatus();
}

// Where the cells of a feature map lie in the image. Without both steps, the cells tile the image.
template <typename T>
struct Grid {
  Grid(const Shape& features, const Shape& image, float step_w, float step_h, float offset_in_cell)
      : height(features[2]),
        width(features[3]),
        image_height(static_cast<T>(image[2])),
        image_width(static_cast<T>(image[3])),
        step_height(step_h),
        step_width(step_w),
        offset(offset_in_cell) {
    if (step_w != 0 && step_h != 0) return;
    step_width = image_width / static_cast<T>(width);
    step_height = image_height / static_cast<T>(height);
  }
  T CenterX(int64_t w) const { return (static_cast<T>(w) + offset) * step_width; }
  T CenterY(int64_t h) const { return (static_cast<T>(h) + offset) * step_height; }

  int64_t height, width;
  T image_height, image_width;
  T step_height, step_width;
  T offset;
};

template <typename T>
void ClipToUnit(T* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] = std::min(std::max(values[i], T{0}), T{1});
}

// Repeats the four variances for every box.
template <typename T>
void FillVariances(const std::vector<float>& variances, Tensor& out) {
  T* values = out.mutable_data<T>();
  for (int64_t i = 0; i < out.numel(); ++i) values[i] = static_cast<T>(variances[i % 4]);
}

}  // namespace interp
