// How pictures are turned that say how the camera was held; the segments are made here.
#include "core/image/orientation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/image/decode.h"
#include "core/image/encode.h"
#include "tests/testing/matchers.h"

namespace interp::orientation_test {
namespace {

using testing::FailsWith;
using testing::IsOk;

constexpr size_t kMaxBytes = 1 << 20;

std::string Number(uint64_t value, int size, bool big_endian) {
  std::string bytes;
  for (int i = 0; i < size; ++i) {
    const int shift = 8 * (big_endian ? size - 1 - i : i);
    bytes += static_cast<char>(value >> shift & 255);
  }
  return bytes;
}

std::string Segment(const std::string& marker, const std::string& body) {
  return marker + Number(body.size() + 2, 2, /*big_endian=*/true) + body;
}

// A directory with the width of the picture before its orientation.
std::string Exif(int orientation, bool big_endian = true, uint64_t directory = 8) {
  const auto two = [&](uint64_t value) { return Number(value, 2, big_endian); };
  const auto four = [&](uint64_t value) { return Number(value, 4, big_endian); };
  const std::string entries = two(0x0100) + two(4) + four(1) + four(16) + two(0x0112) + two(3) +
                              four(1) + two(orientation) + two(0);
  return std::string("Exif\0\0", 6) + (big_endian ? "MM" : "II") + two(42) + four(directory) +
         two(2) + entries + four(0);
}

// The start of an image and one segment.
std::string Head(const std::string& app1) { return "\xff\xd8" + Segment("\xff\xe1", app1); }

// Three pixels in two rows, each with its letter.
std::string TurnedLetters(int number) {
  Picture<uint8_t> picture = {.width = 3, .height = 2};
  for (const char letter : std::string("abcdef"))
    picture.pixels.insert(picture.pixels.end(), 3, letter);
  const Picture<uint8_t> turned = Turned(picture, OrientationOfNumber(number));
  std::string letters;
  for (int y = 0; y < turned.height; ++y) {
    if (y > 0) letters += '/';
    for (int x = 0; x < turned.width; ++x) {
      letters += static_cast<char>(turned.pixels[(y * turned.width + x) * 3 + 2]);
    }
  }
  return letters;
}

// As the table in the standard (JEITA CP-3451) and OpenCV have them.
TEST(Orientation, ThereAreEight) {
  EXPECT_EQ(TurnedLetters(1), "abc/def");
  EXPECT_EQ(TurnedLetters(2), "cba/fed");
  EXPECT_EQ(TurnedLetters(3), "fed/cba");
  EXPECT_EQ(TurnedLetters(4), "def/abc");
  EXPECT_EQ(TurnedLetters(5), "ad/be/cf");
  EXPECT_EQ(TurnedLetters(6), "da/eb/fc");
  EXPECT_EQ(TurnedLetters(7), "fc/eb/da");
  EXPECT_EQ(TurnedLetters(8), "cf/be/ad");
  for (const int other : {-1, 0, 9, 256}) EXPECT_EQ(TurnedLetters(other), "abc/def");
}

TEST(Orientation, IsReadInBothByteOrders) {
  for (int number = 1; number <= 8; ++number) {
    for (const bool big_endian : {false, true}) {
      EXPECT_EQ(OrientationOf(Head(Exif(number, big_endian))), OrientationOfNumber(number));
    }
  }
}

TEST(Orientation, IsFoundBehindOtherSegments) {
  const std::string head = "\xff\xd8" + Segment("\xff\xe0", "JFIF") +
                           Segment("\xff\xff\xe1", "http://ns.adobe.com/xap/1.0/") +
                           Segment("\xff\xe1", Exif(6));
  EXPECT_EQ(OrientationOf(head), OrientationOfNumber(6));
}

TEST(Orientation, IsNotLookedForInWhatIsCompressed) {
  EXPECT_FALSE(
      OrientationOf("\xff\xd8" + Segment("\xff\xda", "x") + Segment("\xff\xe1", Exif(6))).turns());
}

// No bytes of others are read: the address sanitizer sees a copy of its own size.
TEST(Orientation, AnyBytesCanBeRead) {
  const std::string whole = Head(Exif(6));
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<char> part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    OrientationOf({part.data(), part.size()});
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::vector<char> changed(whole.begin(), whole.end());
      changed[at] = static_cast<char>(value);
      OrientationOf({changed.data(), changed.size()});
    }
  }
}

TEST(Orientation, ADirectoryThatIsNotThereSaysNothing) {
  for (const uint64_t directory : {0xffffffffULL, 0xfffffffeULL, 38ULL, 37ULL, 0ULL}) {
    EXPECT_FALSE(OrientationOf(Head(Exif(6, true, directory))).turns()) << directory;
  }
  std::string many = Exif(6);
  many.replace(14, 2, "\xff\xff");  // entries
  EXPECT_EQ(OrientationOf(Head(many)), OrientationOfNumber(6));
  many.replace(28, 2, "xx");  // the tag
  EXPECT_FALSE(OrientationOf(Head(many)).turns());
  EXPECT_FALSE(OrientationOf(Head(Exif(6).substr(0, 30))).turns());
}

class TurnedJpeg {
 public:
  TurnedJpeg() {
    Picture<uint8_t> picture = {.width = 32, .height = 16};
    for (int i = 0; i < 32 * 16 * 3; ++i) picture.pixels.push_back(static_cast<uint8_t>(i / 7));
    file_ = EncodeJpeg(picture, 90).value();
  }
  std::string File(int number) const {
    std::string file = file_;
    return file.insert(2, Segment("\xff\xe1", Exif(number)));
  }

 private:
  std::string file_;
};

TEST(DecodePicture, TurnsAJpegAsItSays) {
  const TurnedJpeg jpeg;
  const Picture<uint8_t> stored = DecodePicture(jpeg.File(1), kMaxBytes).value();
  EXPECT_EQ(stored.width, 32);
  for (int number = 1; number <= 8; ++number) {
    const Picture<uint8_t> expected = Turned(stored, OrientationOfNumber(number));
    const Picture<uint8_t> picture = DecodePicture(jpeg.File(number), kMaxBytes).value();
    EXPECT_EQ(picture.width, number >= 5 ? 16 : 32);
    EXPECT_EQ(picture.height, expected.height);
    EXPECT_EQ(picture.pixels, expected.pixels) << number;
    const PictureSize size = SizeOfPicture(jpeg.File(number)).value();
    EXPECT_EQ(size.width, picture.width);
    EXPECT_EQ(size.height, picture.height);
    EXPECT_EQ(DecodePicture(jpeg.File(number), kMaxBytes, 2)->width, picture.width / 2);
  }
}

TEST(DecodePicture, WhatTurningTakesIsBounded) {
  const TurnedJpeg jpeg;
  EXPECT_THAT(DecodePicture(jpeg.File(1), 32 * 16 * 3), IsOk());
  EXPECT_THAT(DecodePicture(jpeg.File(2), 32 * 16 * 3),
              FailsWith(absl::StatusCode::kResourceExhausted, "32 x 16 pixels"));
  EXPECT_THAT(DecodePicture(jpeg.File(2), 32 * 16 * 6), IsOk());
}

}  // namespace
}  // namespace interp::orientation_test
