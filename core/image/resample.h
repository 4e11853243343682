// Pictures in another size.
#pragma once

#include "core/image/picture.h"

namespace interp {

// A rectangle in a picture, in its pixels; sides and corners may lie between pixels.
struct PictureWindow {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

// The part of the picture in `window`, in width x height pixels. Linear interpolation between pixel
// centres; where the picture shrinks, over as many pixels as go into one (Pillow's BILINEAR).
// Pixels beside the window count where they are as near as those in it.
// REQUIRES: all sizes are above 0 and the window lies in the picture.
Picture<float> Resample(const PictureView& picture, const PictureWindow& window, int width,
                        int height);

// Rounded.
Picture<uint8_t> ToBytes(const Picture<float>& picture);

// All of the picture.
inline Picture<float> Resize(const PictureView& picture, int width, int height) {
  return Resample(
      picture,
      {.width = static_cast<double>(picture.width), .height = static_cast<double>(picture.height)},
      width, height);
}

}  // namespace interp
