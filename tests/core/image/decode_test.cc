// Pictures in files; the files are made here.
#include "core/image/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <turbojpeg.h>

#include <memory>

#include "tests/testing/matchers.h"

namespace interp::decode_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::FailsWith;
using testing::IsOk;

constexpr size_t kMaxBytes = 1 << 24;
constexpr int kSide = 8;

struct PngKind {
  int bits = 8;
  int colour = PNG_COLOR_TYPE_RGB;
  double gamma = 0;  // 0: the file does not say
  int interlace = PNG_INTERLACE_NONE;
};

// A square of kSide pixels, each with the bytes `pixel`.
std::string MakePng(const PngKind& kind, const std::string& pixel) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp to, png_bytep bytes, size_t size) {
        static_cast<std::string*>(png_get_io_ptr(to))->append(reinterpret_cast<char*>(bytes), size);
      },
      nullptr);
  png_set_IHDR(png, info, kSide, kSide, kind.bits, kind.colour, kind.interlace,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (kind.gamma > 0) png_set_gAMA(png, info, kind.gamma);
  png_write_info(png, info);
  std::string row;
  for (int x = 0; x < kSide; ++x) row += pixel;
  const int passes = png_set_interlace_handling(png);
  for (int y = 0; y < kSide * passes; ++y) {
    png_write_row(png, reinterpret_cast<const unsigned char*>(row.data()));
  }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

// Pixels of any format of libjpeg-turbo, all of them `pixel`.
std::string MakeJpeg(int format, const std::string& pixel, int width, int height, int flags = 0) {
  const std::unique_ptr<void, int (*)(void*)> encoder(tjInitCompress(), tjDestroy);
  std::string pixels;
  for (int i = 0; i < width * height; ++i) pixels += pixel;
  unsigned char* bytes = nullptr;
  unsigned long size_bytes = 0;  // NOLINT(google-runtime-int): libjpeg-turbo's type
  EXPECT_EQ(0, tjCompress2(encoder.get(), reinterpret_cast<unsigned char*>(pixels.data()), width, 0,
                           height, format, &bytes, &size_bytes,
                           format == TJPF_GRAY ? TJSAMP_GRAY : TJSAMP_444, 95, flags));
  std::string file(reinterpret_cast<char*>(bytes), size_bytes);
  tjFree(bytes);
  return file;
}

std::string Grey(int level) { return std::string(3, static_cast<char>(level)); }

std::vector<uint8_t> PixelsOf(const std::string& file) {
  const absl::StatusOr<Picture<uint8_t>> picture = DecodePicture(file, kMaxBytes);
  EXPECT_THAT(picture, IsOk());
  return picture.ok() ? picture->pixels : std::vector<uint8_t>();
}

TEST(DecodePicture, OfSixteenBitsTheUpperOnesCount) {
  EXPECT_THAT(PixelsOf(MakePng({.bits = 16}, "\x64\x01\x64\x02\x64\xff")), Each(0x64));
  EXPECT_THAT(PixelsOf(MakePng({.bits = 16, .colour = PNG_COLOR_TYPE_GRAY}, "\x64\x64")),
              Each(0x64));
}

TEST(DecodePicture, GammaAndTransparencyChangeNoPixel) {
  EXPECT_THAT(PixelsOf(MakePng({.gamma = 1}, Grey(100))), Each(100));
  EXPECT_THAT(PixelsOf(MakePng({.colour = PNG_COLOR_TYPE_RGBA}, Grey(100) + "\x80")), Each(100));
  EXPECT_THAT(PixelsOf(MakePng({.colour = PNG_COLOR_TYPE_GRAY_ALPHA}, "\x64\x01")), Each(100));
}

TEST(DecodePicture, InterlacedPngFilesAreRead) {
  EXPECT_THAT(PixelsOf(MakePng({.interlace = PNG_INTERLACE_ADAM7}, Grey(7))), Each(7));
}

TEST(DecodePicture, APngFileThatIsCutOffIsAnError) {
  const std::string file = MakePng({}, Grey(7));
  for (const size_t size : {file.size() - 20, size_t{40}, size_t{12}}) {
    EXPECT_THAT(DecodePicture(file.substr(0, size), kMaxBytes),
                FailsWith(absl::StatusCode::kInvalidArgument, "damaged or cut off: "))
        << size;
  }
}

// The values are what OpenCV gives: inks c, m, y and k, stored inverted, are k - ((255 - c) k >>
// 8).
TEST(DecodePicture, FourInksBecomeThreeColours) {
  const std::string file =
      MakeJpeg(TJPF_CMYK, std::string("\xff\x80\x00\xc8", 4), kSide, kSide, TJFLAG_ACCURATEDCT);
  const std::vector<uint8_t> pixels = PixelsOf(file);
  ASSERT_EQ(pixels.size(), kSide * kSide * 3);
  EXPECT_NEAR(pixels[0], 200, 2);
  EXPECT_NEAR(pixels[1], 200 - (127 * 200 >> 8), 2);
  EXPECT_NEAR(pixels[2], 200 - (255 * 200 >> 8), 2);
}

TEST(DecodePicture, StrayBytesDoNoHarm) {
  const std::string file = MakeJpeg(TJPF_RGB, Grey(90), kSide, kSide);
  for (const char* const marker : {"\xff\xd9", "\xff\xda"}) {
    std::string stray = file;
    stray.insert(stray.rfind(marker), "stray");
    EXPECT_EQ(PixelsOf(stray), PixelsOf(file));
  }
}

TEST(DecodePicture, AJpegFileThatIsDamagedIsAnError) {
  std::string file = MakeJpeg(TJPF_RGB, Grey(90), 64, 64);
  const auto damaged = [&](const std::string& bytes) {
    EXPECT_THAT(DecodePicture(bytes, kMaxBytes),
                FailsWith(absl::StatusCode::kInvalidArgument, "damaged or cut off: "));
  };
  damaged(file.substr(0, file.size() - 4));
  damaged(file.substr(0, 300));
  file.replace(file.size() - 20, 6, "\xff\xff\xfe\x01\x02\x03");
  damaged(file);
}

TEST(DecodePicture, OtherKindsOfJpegAreNotCalledDamaged) {
  const auto unsupported = [](const std::string& file) {
    EXPECT_THAT(DecodePicture(file, kMaxBytes),
                FailsWith(absl::StatusCode::kUnimplemented, "a JPEG file: Unsupported"));
  };
  std::string lossless = MakeJpeg(TJPF_RGB, Grey(90), kSide, kSide);
  lossless[lossless.find("\xff\xc0") + 1] = '\xc3';
  unsupported(lossless);
  // The frame of one component gets a second one.
  std::string two = MakeJpeg(TJPF_GRAY, "\x64", kSide, kSide);
  const size_t frame = two.find("\xff\xc0");
  two[frame + 3] += 3;
  two[frame + 9] = 2;
  two.insert(frame + 13, std::string("\x02\x11\x00", 3));
  unsupported(two);
}

TEST(DecodePicture, WhatDecodingTakesIsBounded) {
  const std::string plain = MakeJpeg(TJPF_RGB, Grey(9), 64, 64);
  const std::string progressive = MakeJpeg(TJPF_RGB, Grey(9), 64, 64, TJFLAG_PROGRESSIVE);
  const std::string inks = MakeJpeg(TJPF_CMYK, Grey(9) + "\x09", 64, 64);
  const auto limit = [](const std::string& file) {
    size_t bytes = 0;
    while (absl::IsResourceExhausted(DecodePicture(file, bytes * 64 * 64).status())) ++bytes;
    return bytes;
  };
  EXPECT_THAT((std::vector{limit(plain), limit(progressive), limit(inks)}), ElementsAre(3, 9, 7));
  // Markers without a length do not hide what follows.
  for (const char* marker : {"\xff\xd0", "\xff\x01"}) {
    EXPECT_EQ(limit(std::string(progressive).insert(2, marker)), 9);
  }
  EXPECT_THAT(DecodePicture(plain, 100),
              FailsWith(absl::StatusCode::kResourceExhausted,
                        "decoding a picture of 64 x 64 pixels takes more than 100 bytes"));
}

}  // namespace
}  // namespace interp::decode_test
