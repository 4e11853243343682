#include "core/image/jpeg_segments.h"

#include <algorithm>

namespace interp {

std::optional<JpegSegment> JpegSegments::Next() {
  while (at_ < file_.size()) {
    const int marker = ByteAt(at_) == 0xff ? ByteAt(at_ + 1) : 0xff;
    if (marker == 0xff) {  // padding or stray bytes
      ++at_;
      continue;
    }
    // Without a length, and read over by libjpeg: RST0 to RST7, SOI, TEM, a stuffed zero.
    if ((marker >= 0xd0 && marker <= 0xd8) || marker <= 1) {
      at_ += 2;
      continue;
    }
    const size_t length = size_t{ByteAt(at_ + 2)} << 8 | ByteAt(at_ + 3);  // with itself
    const size_t begin = std::min(at_ + 4, file_.size());
    at_ += 2 + length;
    return JpegSegment{.marker = marker,
                       .body = file_.substr(begin, length - std::min<size_t>(length, 2))};
  }
  return std::nullopt;
}

}  // namespace interp
