// Pictures: pixels in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace interp {

// Rows from the top, pixels from the left, channels (red, green, blue) side by side. Of T: uint8_t
// of a file, float of what was resampled, both from 0 to 255.
template <typename T>
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<T> pixels = {};  // height * width * kChannels

  static constexpr int kChannels = 3;
};

// Pixels of a picture that somebody else owns: of all of it or of a rectangle in it.
struct PictureView {
  const uint8_t* pixels = nullptr;
  int width = 0;
  int height = 0;
  size_t row_bytes = 0;  // from one row to the next
};

inline PictureView ViewOf(const Picture<uint8_t>& picture) {
  return {.pixels = picture.pixels.data(),
          .width = picture.width,
          .height = picture.height,
          .row_bytes = static_cast<size_t>(picture.width) * Picture<uint8_t>::kChannels};
}

// REQUIRES: the rectangle lies in the picture.
inline PictureView Cut(const PictureView& view, int left, int top, int width, int height) {
  return {.pixels = view.pixels + top * view.row_bytes +
                    static_cast<size_t>(left) * Picture<uint8_t>::kChannels,
          .width = width,
          .height = height,
          .row_bytes = view.row_bytes};
}

}  // namespace interp
