// Pictures become samples.
#include "core/image/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/image/encode.h"
#include "tests/testing/matchers.h"

namespace interp {
namespace {

using testing::FailsWith;
using testing::IsOk;

constexpr size_t kMaxBytes = 1 << 24;

// Values that tell where a pixel lies: red is 2 x, green is 3 y, blue is 100.
Picture<uint8_t> Map(int width, int height) {
  Picture<uint8_t> picture{width, height};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      picture.pixels.insert(picture.pixels.end(),
                            {static_cast<uint8_t>(2 * x), static_cast<uint8_t>(3 * y), 100});
    }
  }
  return picture;
}
std::string MapPng(int width, int height) { return EncodePng(Map(width, height)).value(); }

RandomStream Stream(uint64_t sample) { return RandomStream({.seed = 5}, 0).Split(sample); }

Tensor BatchFor(const ImagePreparation& preparation) {
  Tensor batch;
  batch.shape = {1};
  for (const int64_t dim : ShapeOf(preparation.width, preparation.height, preparation.pixels)) {
    batch.shape.push_back(dim);
  }
  batch.dtype = DType::kFloat32;
  EXPECT_THAT(batch.Allocate(SystemAllocator()), IsOk());
  return batch;
}

std::vector<float> Prepare(const std::string& file, const ImagePreparation& preparation,
                           const std::optional<RandomStream>& random = std::nullopt) {
  Tensor batch = BatchFor(preparation);
  EXPECT_THAT(PrepareSample(file, preparation, kMaxBytes, random, 0, batch), IsOk());
  return testing::Values<float>(batch);
}

TEST(ChooseWindow, CropTakesTheMiddleOfTheResizedPicture) {
  const PictureSize wide = {.width = 400, .height = 200};
  ImagePreparation preparation{.width = 100, .height = 50, .fit = Fit::kCrop};
  const auto expect = [&](double left, double top, double width, double height) {
    const PictureWindow window = ChooseWindow(wide, preparation, std::nullopt);
    EXPECT_DOUBLE_EQ(window.left, left);
    EXPECT_DOUBLE_EQ(window.top, top);
    EXPECT_DOUBLE_EQ(window.width, width);
    EXPECT_DOUBLE_EQ(window.height, height);
  };
  expect(0, 0, 400, 200);
  preparation.width = 50;  // as small as holds it: 100 x 50
  expect(100, 0, 200, 200);
  preparation.shorter_side = 100;  // 200 x 100
  expect(150, 50, 100, 100);
  preparation.shorter_side = 0;
  expect(175, 75, 50, 50);
  preparation.shorter_side = 10;  // too small
  expect(100, 0, 200, 200);
}

TEST(ChooseWindow, RandomPlacesReachEveryCorner) {
  const PictureSize size = {.width = 40, .height = 30};
  const ImagePreparation preparation{
      .width = 38, .height = 28, .fit = Fit::kRandom, .shorter_side = 0};
  std::set<std::pair<double, double>> places;
  for (uint64_t sample = 0; sample < 200; ++sample) {
    const PictureWindow window = ChooseWindow(size, preparation, Stream(sample));
    EXPECT_DOUBLE_EQ(window.width, 38);
    places.emplace(window.left, window.top);
  }
  std::set<std::pair<double, double>> all;
  for (int x = 0; x <= 2; ++x) {
    for (int y = 0; y <= 2; ++y) all.emplace(x, y);
  }
  EXPECT_EQ(places, all);
}

TEST(ChooseWindow, RandomAreasLieInTheirBounds) {
  const PictureSize size = {.width = 300, .height = 200};
  const ImagePreparation preparation{
      .width = 10, .height = 10, .fit = Fit::kRandom, .area = Interval{.low = 0.1, .high = 0.5}};
  double least = 1;
  double most = 0;
  for (uint64_t sample = 0; sample < 1000; ++sample) {
    const PictureWindow window = ChooseWindow(size, preparation, Stream(sample));
    const double area = window.width * window.height / (300.0 * 200.0);
    least = std::min(least, area);
    most = std::max(most, area);
    EXPECT_GE(window.left, 0);
    EXPECT_LE(window.left + window.width, 300);
    EXPECT_LE(window.top + window.height, 200);
    EXPECT_NEAR(std::log(window.width / window.height), 0, std::log(4.0 / 3) + 0.03);
  }
  EXPECT_NEAR(least, 0.1, 0.01);
  EXPECT_NEAR(most, 0.5, 0.01);
}

TEST(PrepareSample, WritesTheWindowNormalised) {
  ImagePreparation preparation{.width = 2, .height = 1, .fit = Fit::kCrop, .shorter_side = 0};
  preparation.pixels = {.scale = 0.5, .mean = {1, 2, 3}, .deviation = {2}};
  // The middle of 6 x 5: pixels (2, 2) and (3, 2).
  EXPECT_THAT(
      Prepare(MapPng(6, 5), preparation),
      ::testing::Pointwise(::testing::FloatNear(1e-5), {0.5F, 1.F, 0.5F, 0.5F, 23.5F, 23.5F}));
  preparation.mirror = Mirror::kAlways;
  EXPECT_THAT(
      Prepare(MapPng(6, 5), preparation),
      ::testing::Pointwise(::testing::FloatNear(1e-5), {1.F, 0.5F, 0.5F, 0.5F, 23.5F, 23.5F}));
}

TEST(PrepareSample, MirrorsHalfOfTheSamplesAndNoneWithoutChance) {
  const ImagePreparation preparation{.width = 6, .height = 5, .mirror = Mirror::kRandom};
  const std::string file = MapPng(6, 5);
  int mirrored = 0;
  for (uint64_t sample = 0; sample < 200; ++sample) {
    mirrored += Prepare(file, preparation, Stream(sample))[0] > 5 ? 1 : 0;
  }
  EXPECT_GT(mirrored, 70);
  EXPECT_LT(mirrored, 130);
  EXPECT_EQ(Prepare(file, preparation)[0], 0);
}

// Decoding at half the size and resampling the rest gives what resampling all of it gives.
TEST(PrepareSample, AJpegThatIsDecodedSmallerLooksTheSame) {
  const std::string jpeg = EncodeJpeg(Map(101, 67), 95).value();
  const std::string png = EncodePng(DecodePicture(jpeg, kMaxBytes).value()).value();
  for (const int side : {8, 16, 24, 33, 60}) {
    const ImagePreparation preparation{.width = side, .height = side, .fit = Fit::kCrop};
    const std::vector<float> shrunk = Prepare(jpeg, preparation);
    const std::vector<float> whole = Prepare(png, preparation);
    double difference = 0;
    for (size_t i = 0; i < whole.size(); ++i) difference += std::abs(whole[i] - shrunk[i]);
    EXPECT_LT(difference / static_cast<double>(whole.size()), 1.2) << side;
  }
}

TEST(PrepareSample, AnotherSizeThanThatOfTheBatchIsAnError) {
  Tensor batch = BatchFor({.width = 3, .height = 3});
  EXPECT_THAT(PrepareSample(MapPng(6, 5), {}, kMaxBytes, std::nullopt, 0, batch),
              FailsWith(absl::StatusCode::kInvalidArgument, "a picture of [3,5,6], expected one"));
}

TEST(SizeOfPicture, IsThatOfTheDecodedPicture) {
  const std::string png = MapPng(7, 3);
  const std::string jpeg = EncodeJpeg(Map(7, 3), 90).value();
  for (const std::string& file : {png, jpeg}) {
    EXPECT_EQ(SizeOfPicture(file)->width, 7);
    EXPECT_EQ(SizeOfPicture(file)->height, 3);
    EXPECT_EQ(DecodePicture(file, kMaxBytes)->width, 7);
    for (size_t size = 0; size + 24 < file.size(); size += 7) {  // all but what ends it
      EXPECT_FALSE(DecodePicture(file.substr(0, size), kMaxBytes).ok()) << size;
    }
  }
  EXPECT_EQ(DecodePicture(jpeg, kMaxBytes, 2)->width, 4);
  EXPECT_THAT(SizeOfPicture("GIF89a"),
              FailsWith(absl::StatusCode::kInvalidArgument, "JPEG or PNG"));
}

}  // namespace
}  // namespace interp
