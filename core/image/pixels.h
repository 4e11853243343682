// Pixels as elements of a tensor.
#pragma once

#include <vector>

#include "core/image/picture.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

enum class Colour { kRgb, kBgr, kGray };

// element = (pixel * scale - mean) / deviation
struct PixelFormat {
  Colour colour = Colour::kRgb;
  double scale = 1;
  // One for all channels, or one for each in the order that `colour` says.
  std::vector<double> mean = {0};
  std::vector<double> deviation = {1};
  bool channels_last = false;

  int channels() const { return colour == Colour::kGray ? 1 : 3; }
};

// The dims of one picture in a tensor: [channels, height, width], or channels last.
Shape ShapeOf(int width, int height, const PixelFormat& format);

bool HoldsPixels(DType dtype);

// Writes sample `index` of `batch`, whose first dimension counts samples of ShapeOf(picture);
// integers are rounded. `mirror`: the left column becomes the right one. Thread-safety: several
// threads may write different samples. Error: InvalidArgument for a dtype without HoldsPixels.
absl::Status WritePixels(const Picture<float>& picture, const PixelFormat& format, bool mirror,
                         int64_t index, Tensor& batch);

}  // namespace interp
