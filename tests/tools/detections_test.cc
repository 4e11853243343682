#include "tools/detections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <tuple>

namespace interp::detections_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Rgb = std::tuple<int, int, int>;

Picture<uint8_t> Paper(int width, int height) {
  Picture<uint8_t> picture{width, height};
  picture.pixels.assign(static_cast<size_t>(width) * height * picture.kChannels, 200);
  return picture;
}

const Rgb kPaper = {200, 200, 200};

Rgb At(const Picture<uint8_t>& picture, int x, int y) {
  const uint8_t* const pixel =
      &picture.pixels[(static_cast<size_t>(y) * picture.width + x) * picture.kChannels];
  return {pixel[0], pixel[1], pixel[2]};
}

std::string ErrorOf(const Tensor& tensor) {
  return std::string(ReadDetections({"found", tensor}).status().message());
}

TEST(ReadDetectionsTest, RowsAreLabelScoreAndCorners) {
  const Tensor rows =
      Tensor::Of<float>({1, 2, 6}, {3, 0.5F, 1, 2, 30, 40, 0, 0.25F, -5, 0, 700, 8});
  const auto found = ReadDetections({"found", rows});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_THAT(*found, SizeIs(2));
  EXPECT_EQ((*found)[0].label, 3);
  EXPECT_EQ((*found)[0].score, 0.5);
  ASSERT_THAT((*found)[1].points, SizeIs(2));
  EXPECT_EQ((*found)[1].points[0].x, -5);
  EXPECT_EQ((*found)[1].points[1].y, 8);

  const auto polygon =
      ReadDetections({"found", Tensor::Of<double>({1, 10}, {1, 0.5, 1, 2, 3, 4, 5, 6, 7, 8})});
  ASSERT_TRUE(polygon.ok()) << polygon.status();
  ASSERT_THAT((*polygon)[0].points, SizeIs(4));
  EXPECT_EQ((*polygon)[0].points[3].x, 7);
}

TEST(ReadDetectionsTest, NothingFoundHasSeveralForms) {
  for (const Tensor& tensor :
       {Tensor::Of<float>({0, 6}, {}), Tensor::Of<float>({1, 1}, {-1}),
        Tensor::Of<float>({1}, {-1}), Tensor::Of<float>({1, 6}, {-1, 0, 0, 0, 0, 0})}) {
    const auto found = ReadDetections({"found", tensor});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_THAT(*found, IsEmpty());
  }
}

TEST(ReadDetectionsTest, OtherFormsAreErrors) {
  EXPECT_THAT(ErrorOf(Tensor::Of<float>({2, 7}, std::vector<float>(14))),
              HasSubstr("'found' is float32[2,7], expected floats [N,6], rows of label, score"));
  EXPECT_THAT(ErrorOf(Tensor::Of<int32_t>({1, 6}, std::vector<int32_t>(6))),
              HasSubstr("'found' is int32[1,6], expected floats"));
  EXPECT_THAT(ErrorOf(Tensor::Of<float>({2, 1, 6}, std::vector<float>(12))),
              HasSubstr("'found' is float32[2,1,6], expected floats"));
  EXPECT_THAT(ErrorOf(Tensor::Of<float>({1, 1}, {0})), HasSubstr("float32[1,1], expected"));
  for (const float label : {0.5F, NAN, INFINITY, 1e30F}) {
    EXPECT_THAT(ErrorOf(Tensor::Of<float>({2, 6}, {0, 0, 0, 0, 0, 0, label, 0, 0, 0, 0, 0})),
                HasSubstr("'found': row 1: label "));
  }
  EXPECT_EQ(ErrorOf(Tensor()), "'found' has no value to draw");
}

TEST(DrawDetectionsTest, OutlinesHaveTheColourOfTheirLabel) {
  Picture<uint8_t> picture = Paper(400, 300);
  const std::vector<Detection> detections = {
      {.label = 1, .score = 0.9, .points = {{20, 40}, {100, 120}}},
      {.label = 2, .score = 0.8, .points = {{200, 40}, {300, 120}}},
      {.label = 1, .score = 0.7, .points = {{20.4, 200}, {100, 280}}}};
  EXPECT_EQ(DrawDetections(detections, {}, picture), 3);
  const Rgb colour = At(picture, 20, 100);
  EXPECT_NE(colour, kPaper);
  for (const auto& [x, y] : {std::pair(60, 40), std::pair(99, 80), std::pair(60, 119),
                             std::pair(20, 250), std::pair(60, 279)}) {
    EXPECT_EQ(At(picture, x, y), colour) << x << "," << y;
  }
  for (const auto& [x, y] : {std::pair(21, 80), std::pair(98, 80), std::pair(100, 80),
                             std::pair(60, 120), std::pair(19, 80)}) {
    EXPECT_EQ(At(picture, x, y), kPaper) << x << "," << y;
  }
  EXPECT_NE(At(picture, 200, 100), colour);
  EXPECT_NE(At(picture, 200, 100), kPaper);
}

TEST(DrawDetectionsTest, ManyLabelsHaveColoursOfTheirOwn) {
  std::set<Rgb> colours;
  for (int64_t label = 0; label < 40; ++label) {
    Picture<uint8_t> picture = Paper(50, 50);
    DrawDetections({{.label = label, .score = 1, .points = {{5, 5}, {45, 45}}}}, {}, picture);
    colours.insert(At(picture, 5, 44));
  }
  EXPECT_THAT(colours, SizeIs(40));
}

TEST(DrawDetectionsTest, WhatLiesOutsideIsNotDrawn) {
  Picture<uint8_t> picture = Paper(50, 50);
  const std::vector<Detection> detections = {
      {.label = 1, .score = 1, .points = {{50, 0}, {90, 40}}},
      {.label = 1, .score = 1, .points = {{0, -40}, {40, -1}}},
      {.label = 1, .score = 1, .points = {{0, 0}, {NAN, 40}}},
      {.label = 1, .score = 1, .points = {{0, 0}, {INFINITY, 40}}}};
  EXPECT_EQ(DrawDetections(detections, {}, picture), 0);
  EXPECT_EQ(picture.pixels, Paper(50, 50).pixels);
  EXPECT_EQ(DrawDetections({{.label = 1, .score = 1, .points = {{-1e30, 30}, {1e30, 1e30}}}}, {},
                           picture),
            1);
  EXPECT_NE(At(picture, 0, 48), kPaper);
  EXPECT_NE(At(picture, 49, 48), kPaper);
}

TEST(DrawDetectionsTest, TheBestIsOnTop) {
  const Detection best = {.label = 1, .score = 0.9, .points = {{10, 20}, {40, 45}}};
  const Detection other = {.label = 2, .score = 0.5, .points = {{10, 20}, {40, 45}}};
  Picture<uint8_t> alone = Paper(50, 50);
  DrawDetections({best}, {}, alone);
  Picture<uint8_t> both = Paper(50, 50);
  DrawDetections({best, other}, {}, both);
  EXPECT_EQ(At(both, 10, 40), At(alone, 10, 40));
}

// The tag of a box at the upper edge is inside of it, that of one at the right edge ends there.
TEST(DrawDetectionsTest, TagsStayInThePicture) {
  Picture<uint8_t> picture = Paper(100, 60);
  DrawDetections({{.label = 0, .score = 1, .points = {{90, 0}, {99, 50}}}}, {}, picture);
  const Rgb colour = At(picture, 90, 49);
  EXPECT_EQ(At(picture, 100 - (6 * 6 + 2), 0), colour);
  EXPECT_EQ(At(picture, 99, 14), colour);
  EXPECT_EQ(At(picture, 80, 15), kPaper);
}

TEST(DrawDetectionsTest, TagsNameTheLabel) {
  const Detection named = {.label = 0, .score = 0.5, .points = {{10, 30}, {90, 50}}};
  const auto drawn = [&](const Detection& detection, const std::vector<std::string>& labels) {
    Picture<uint8_t> picture = Paper(100, 60);
    DrawDetections({detection}, labels, picture);
    return picture.pixels;
  };
  EXPECT_EQ(drawn(named, {}), drawn(named, {"0"}));
  EXPECT_EQ(drawn(named, {""}), drawn(named, {"0"}));
  EXPECT_NE(drawn(named, {"cat"}), drawn(named, {"dog"}));
  EXPECT_NE(drawn(named, {"cat"}), drawn({0, 0.51, named.points}, {"cat"}));
}

TEST(DrawDetectionsTest, PolygonsAreClosedLines) {
  Picture<uint8_t> picture = Paper(100, 100);
  DrawDetections({{.label = 0, .score = 1, .points = {{50, 20}, {80, 50}, {50, 80}, {20, 50}}}}, {},
                 picture);
  const Rgb colour = At(picture, 50, 80);
  EXPECT_NE(colour, kPaper);
  for (const auto& [x, y] : {std::pair(65, 35), std::pair(65, 65), std::pair(35, 65)}) {
    EXPECT_EQ(At(picture, x, y), colour) << x << "," << y;
  }
  EXPECT_EQ(At(picture, 35, 35), colour);
  EXPECT_EQ(At(picture, 80, 20), kPaper);
}

}  // namespace
}  // namespace interp::detections_test
