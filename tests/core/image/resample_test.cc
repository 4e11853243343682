#include "core/image/resample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace interp {
namespace {

// A ramp: the pixel in column x has the values 10 x, 10 x + 1, 10 x + 2 and 3 y more in row y.
Picture<uint8_t> Ramp(int width, int height) {
  Picture<uint8_t> picture{width, height};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        picture.pixels.push_back(static_cast<uint8_t>(10 * x + c + 3 * y));
      }
    }
  }
  return picture;
}

float PixelAt(const Picture<float>& picture, int x, int y, int c) {
  return picture.pixels[(static_cast<size_t>(y) * picture.width + x) * 3 + c];
}

// What Pillow's Image.resize(..., BILINEAR) gives for the same numbers.
TEST(Resample, ResizesAsPillowDoes) {
  Picture<uint8_t> picture{5, 3};
  for (const uint8_t value : {0, 53, 106, 159, 212, 37, 101, 165, 229, 37, 74, 149, 224, 43, 118}) {
    picture.pixels.insert(picture.pixels.end(), 3, value);
  }
  const auto expect = [&](int width, int height, const std::vector<float>& expected) {
    const Picture<float> resized = Resize(ViewOf(picture), width, height);
    ASSERT_EQ(resized.pixels.size(), expected.size() * 3);
    for (size_t i = 0; i < resized.pixels.size(); ++i) {
      EXPECT_NEAR(resized.pixels[i], expected[i / 3], 1e-3) << i;
    }
  };
  expect(3, 2, {38.3571F, 128.1250F, 163.0357F, 90.5000F, 166.3194F, 98.3929F});
  expect(2, 6,
         {53.0000F, 159.0000F, 65.0000F, 156.1364F, 89.0000F, 150.4091F, 110.0909F, 138.8636F,
          128.2727F, 121.5000F, 137.3636F, 112.8182F});
  expect(7, 4, {0.0000F,  30.2857F,  68.1429F,  106.0000F, 143.8571F, 181.7143F, 212.0000F,
                23.1250F, 57.3393F,  100.1071F, 142.8750F, 185.6429F, 159.8393F, 102.6250F,
                50.8750F, 89.8036F,  138.4643F, 187.1250F, 167.2143F, 119.8750F, 67.3750F,
                74.0000F, 116.8571F, 170.4286F, 224.0000F, 94.7143F,  75.1429F,  118.0000F});
}

TEST(Resample, AWindowOfWholePixelsIsTheCut) {
  const Picture<uint8_t> ramp = Ramp(8, 6);
  const Picture<float> out =
      Resample(ViewOf(ramp), {.left = 2, .top = 1, .width = 4, .height = 3}, 4, 3);
  const PictureView cut = Cut(ViewOf(ramp), 2, 1, 4, 3);
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 12; ++x) {
      EXPECT_EQ(out.pixels[y * 12 + x], cut.pixels[y * cut.row_bytes + x]);
    }
  }
}

// What lies beside the window counts, so the ramp goes on at its border.
TEST(Resample, AWindowBetweenPixelsInterpolates) {
  const Picture<float> out =
      Resample(ViewOf(Ramp(8, 6)), {.left = 2.5, .top = 1.25, .width = 2, .height = 2}, 4, 4);
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 4; ++x) {
      const double column = 2.5 + (x + 0.5) / 2 - 0.5;
      const double row = 1.25 + (y + 0.5) / 2 - 0.5;
      for (int c = 0; c < 3; ++c) {
        EXPECT_NEAR(PixelAt(out, x, y, c), 10 * column + c + 3 * row, 1e-4);
      }
    }
  }
}

}  // namespace
}  // namespace interp
