#include "core/image/orientation.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/image/jpeg_segments.h"

namespace interp {
namespace {

constexpr absl::string_view kExif("Exif\0\0", 6);
constexpr uint64_t kOrientationTag = 0x0112;
// Of a directory: its tag, its type, how many values, and these or where they are.
constexpr uint64_t kTiffEntryBytes = 12;
constexpr uint64_t kValueAt = 8;

// The numbers of a TIFF file, which EXIF is. Zero where they are not in it.
class TiffNumbers {
 public:
  TiffNumbers(absl::string_view bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  uint64_t Two(uint64_t at) const { return Number(at, 2); }
  uint64_t Four(uint64_t at) const { return Number(at, 4); }

 private:
  uint64_t Number(uint64_t at, uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return 0;
    uint64_t number = 0;
    for (uint64_t i = 0; i < size; ++i) {
      number = number << 8 | static_cast<uint8_t>(bytes_[big_endian_ ? at + i : at + size - 1 - i]);
    }
    return number;
  }

  absl::string_view bytes_;
  bool big_endian_;
};

// Of the first directory, which is that of the picture. 0 where it says nothing.
int NumberIn(absl::string_view tiff) {
  const bool big_endian = absl::StartsWith(tiff, "MM");
  if (!big_endian && !absl::StartsWith(tiff, "II")) return 0;
  const TiffNumbers numbers(tiff, big_endian);
  if (numbers.Two(2) != 42) return 0;
  const uint64_t directory = numbers.Four(4);
  const uint64_t count = numbers.Two(directory);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t entry = directory + 2 + i * kTiffEntryBytes;
    if (entry >= tiff.size()) break;
    if (numbers.Two(entry) == kOrientationTag)
      return static_cast<int>(numbers.Two(entry + kValueAt));
  }
  return 0;
}

}  // namespace

Orientation OrientationOfNumber(int number) {
  if (number < 1 || number > 8) return {};
  return {.transposes = number >= 5,
          .mirrors = number == 2 || number == 3 || number == 6 || number == 7,
          .flips = number == 3 || number == 4 || number == 7 || number == 8};
}

Orientation OrientationOf(absl::string_view jpeg) {
  JpegSegments segments(jpeg);
  while (std::optional<JpegSegment> segment = segments.Next()) {
    if (segment->marker == JpegSegments::kStartOfScan) break;
    // Another one may be of XMP.
    const bool is_exif =
        segment->marker == JpegSegments::kApp1 && absl::ConsumePrefix(&segment->body, kExif);
    if (is_exif) return OrientationOfNumber(NumberIn(segment->body));
  }
  return {};
}

Picture<uint8_t> Turned(const Picture<uint8_t>& picture, const Orientation& orientation) {
  constexpr int64_t kPixelBytes = Picture<uint8_t>::kChannels;
  Picture<uint8_t> turned = {.width = picture.width, .height = picture.height};
  // From one pixel of the new picture to the next one, in the old one.
  int64_t right = kPixelBytes;
  int64_t down = picture.width * kPixelBytes;
  if (orientation.transposes) {
    std::swap(turned.width, turned.height);
    std::swap(right, down);
  }
  int64_t first = 0;
  if (orientation.mirrors) {
    first += (turned.width - 1) * right;
    right = -right;
  }
  if (orientation.flips) {
    first += (turned.height - 1) * down;
    down = -down;
  }
  turned.pixels.resize(picture.pixels.size());
  uint8_t* to = turned.pixels.data();
  for (int64_t y = 0; y < turned.height; ++y) {
    for (int64_t x = 0; x < turned.width; ++x, to += kPixelBytes) {
      const uint8_t* const from = picture.pixels.data() + first + y * down + x * right;
      for (int c = 0; c < kPixelBytes; ++c) to[c] = from[c];
    }
  }
  return turned;
}

}  // namespace interp
