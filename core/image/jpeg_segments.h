// The segments of a JPEG file, from the first one on: what libjpeg reads over is left out.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace interp {

struct JpegSegment {
  int marker = 0;               // its second byte: 0xe1 of APP1
  absl::string_view body = {};  // behind the length; shorter where the file is cut off
};

class JpegSegments {
 public:
  static constexpr int kApp1 = 0xe1;
  static constexpr int kStartOfScan = 0xda;  // what is compressed follows, which has no segments

  // The file is borrowed, and may hold any bytes.
  explicit JpegSegments(absl::string_view file) : file_(file) {}

  std::optional<JpegSegment> Next();

 private:
  uint8_t ByteAt(size_t at) const {  // zero behind the end
    return at < file_.size() ? static_cast<uint8_t>(file_[at]) : 0;
  }

  absl::string_view file_;
  size_t at_ = 2;  // behind the start of the image
};

}  // namespace interp
