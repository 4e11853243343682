#include "core/shape.h"

#include <gtest/gtest.h>

#include <limits>

namespace interp {
namespace {

TEST(ShapeTest, ScalarsHaveOneElement) {
  EXPECT_EQ(Shape().rank(), 0);
  EXPECT_EQ(Shape().numel(), 1);
  EXPECT_EQ(Shape().CheckedNumel(), 1);
  EXPECT_EQ(ToString(Shape()), "[]");
}

TEST(ShapeTest, CountsElements) {
  const Shape shape = {2, 3, 4};
  EXPECT_EQ(shape.numel(), 24);
  EXPECT_EQ(shape.numel(1, 3), 12);
  EXPECT_EQ(shape.numel(1, 1), 1);
  EXPECT_EQ(shape.back(), 4);
  EXPECT_EQ(shape.back(3), 2);
  EXPECT_EQ((Shape{2, 0, 4}.numel()), 0);
  EXPECT_EQ(ToString(Shape{2, -1}), "[2,-1]");
}

TEST(ShapeTest, CheckedNumelRefusesWhatMemoryCannotHold) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ((Shape{2, 3}.CheckedNumel()), 6);
  EXPECT_EQ((Shape{2, 0}.CheckedNumel()), 0);
  EXPECT_EQ((Shape{2, -1}.CheckedNumel()), std::nullopt);
  EXPECT_EQ((Shape{-1, 0}.CheckedNumel()), std::nullopt);
  EXPECT_EQ((Shape{kMax / 16}.CheckedNumel()), kMax / 16);
  EXPECT_EQ((Shape{kMax / 16 + 1}.CheckedNumel()), std::nullopt);
  EXPECT_EQ((Shape{int64_t{1} << 32, int64_t{1} << 32}.CheckedNumel()), std::nullopt);
  EXPECT_EQ((Shape{0, kMax, kMax}.CheckedNumel()), std::nullopt);
}

TEST(ShapeTest, ComparesRankAndDims) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_FALSE((Shape{2, 3} == Shape{2, 3, 1}));
  EXPECT_FALSE((Shape{2, 3} == Shape{3, 2}));
}

TEST(ShapeTest, ResizeFillsNewDims) {
  Shape shape = {5};
  shape.resize(3);
  EXPECT_EQ(shape, (Shape{5, 1, 1}));
  shape.resize(1);
  shape.resize(2, 7);
  EXPECT_EQ(shape, (Shape{5, 7}));
  shape.push_back(8);
  EXPECT_EQ(shape, (Shape{5, 7, 8}));
}

TEST(ShapeTest, AxesCountFromBothEnds) {
  EXPECT_EQ(NormalizeAxis(0, 3), 0);
  EXPECT_EQ(NormalizeAxis(-1, 3), 2);
  EXPECT_EQ(NormalizeAxis(-3, 3), 0);
  EXPECT_EQ(NormalizeAxis(3, 3), std::nullopt);
  EXPECT_EQ(NormalizeAxis(-4, 3), std::nullopt);
  EXPECT_EQ(NormalizeAxis(0, 0), std::nullopt);
  EXPECT_EQ(NormalizeAxis(std::numeric_limits<int64_t>::min(), 3), std::nullopt);
}

}  // namespace
}  // namespace interp
