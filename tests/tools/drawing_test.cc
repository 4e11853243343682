#include "tools/drawing.h"

#include <gtest/gtest.h>

#include <string>

namespace interp::drawing_test {
namespace {

constexpr PixelColour kInk = {10, 20, 30};

Picture<uint8_t> Paper(int width, int height) {
  Picture<uint8_t> picture{width, height};
  picture.pixels.assign(static_cast<size_t>(width) * height * picture.kChannels, 255);
  return picture;
}

// A line for each row: '#' where there is ink, '.' where there is none.
std::string Text(const Picture<uint8_t>& picture) {
  std::string text;
  for (size_t i = 0; i < picture.pixels.size(); i += picture.kChannels) {
    const uint8_t* const pixel = &picture.pixels[i];
    const bool ink = pixel[0] == kInk.red && pixel[1] == kInk.green && pixel[2] == kInk.blue;
    text += ink ? '#' : '.';
    if ((i / picture.kChannels + 1) % picture.width == 0) text += '\n';
  }
  return text;
}

TEST(DrawingTest, RectanglesEndAtThePicture) {
  Picture<uint8_t> picture = Paper(5, 3);
  FillRectangle({3, -2, 9, 2}, kInk, picture);
  FillRectangle({-5, 2, 1, 9}, kInk, picture);
  FillRectangle({4, 4, 2, 2}, kInk, picture);
  EXPECT_EQ(Text(picture),
            "...##\n"
            "...##\n"
            "#....\n");
}

TEST(DrawingTest, FramesAreInsideOfTheirRectangles) {
  Picture<uint8_t> picture = Paper(8, 7);
  DrawFrame({1, 1, 8, 7}, 2, kInk, picture);
  EXPECT_EQ(Text(picture),
            "........\n"
            ".#######\n"
            ".#######\n"
            ".##...##\n"
            ".##...##\n"
            ".#######\n"
            ".#######\n");
  Picture<uint8_t> small = Paper(4, 3);
  DrawFrame({1, 1, 3, 2}, 5, kInk, small);
  EXPECT_EQ(Text(small),
            "....\n"
            ".##.\n"
            "....\n");
}

TEST(DrawingTest, LinesHaveNoGaps) {
  Picture<uint8_t> picture = Paper(6, 4);
  DrawLine({5, 3}, {0, 0}, 1, kInk, picture);
  EXPECT_EQ(Text(picture),
            "##....\n"
            "..##..\n"
            "....#.\n"
            ".....#\n");
  Picture<uint8_t> steep = Paper(3, 4);
  DrawLine({1, 3}, {0, 0}, 1, kInk, steep);
  EXPECT_EQ(Text(steep),
            "#..\n"
            "#..\n"
            "#..\n"
            ".#.\n");
}

TEST(DrawingTest, LinesFromFarAwayCrossThePicture) {
  Picture<uint8_t> picture = Paper(5, 3);
  DrawLine({-1e9, 1}, {1e9, 1}, 1, kInk, picture);
  DrawLine({2, 1e9}, {2, -1e9}, 1, kInk, picture);
  DrawLine({1e9, -1e9}, {1e9, 1e9}, 1, kInk, picture);
  EXPECT_EQ(Text(picture),
            "..#..\n"
            "#####\n"
            "..#..\n");
}

TEST(DrawingTest, TextIsWrittenInTheFont) {
  Picture<uint8_t> picture = Paper(12, 13);
  DrawText("g7", 0, 0, 1, kInk, picture);
  EXPECT_EQ(Text(picture),
            "............\n"
            "............\n"
            "......#####.\n"
            "..........#.\n"
            ".........#..\n"
            ".###.....#..\n"
            "#...#...#...\n"
            "#...#...#...\n"
            "#...#..#....\n"
            ".####..#....\n"
            "....#..#....\n"
            "#...#.......\n"
            ".###........\n");
  EXPECT_EQ(TextHeight(2), 26);
}

TEST(DrawingTest, WhatTheFontLacksIsOneQuestionMark) {
  Picture<uint8_t> expected = Paper(24, 13);
  DrawText("a?b?", 0, 0, 1, kInk, expected);
  Picture<uint8_t> picture = Paper(24, 13);
  DrawText("a猫b\n", 0, 0, 1, kInk, picture);
  EXPECT_EQ(Text(picture), Text(expected));
  EXPECT_EQ(TextWidth("a猫b\n", 2), 48);
}

}  // namespace
}  // namespace interp::drawing_test
