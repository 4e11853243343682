// Pictures in files: JPEG (libjpeg-turbo) and PNG (libpng).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace interp {

// Rows from the top, pixels from the left, channels (red, green, blue) side by side. Of T: uint8_t
// of a file, float of what was resized, both from 0 to 255.
template <typename T>
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<T> pixels = {};  // height * width * kChannels

  static constexpr int kChannels = 3;
};

// Grey pictures have three equal channels; what is transparent lies on black. `max_bytes` bounds
// the file and its pixels. Errors start with the path: NotFound, InvalidArgument for what is no
// picture or damaged, ResourceExhausted.
absl::StatusOr<Picture<uint8_t>> ReadPicture(const std::string& path, size_t max_bytes);

// Writes a PNG file, beside its place and renamed. Errors are those of FileWriter (core/io/file.h).
absl::Status WritePng(const std::string& path, const Picture<uint8_t>& picture);

// Linear interpolation between pixel centres; where the picture shrinks, over as many pixels as go
// into one (Pillow's BILINEAR). REQUIRES: all sizes are above 0.
Picture<float> Resize(const Picture<float>& picture, int width, int height);

}  // namespace interp
