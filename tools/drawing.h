// Rectangles, lines and text on pictures. What lies outside of the picture is left out.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/image/picture.h"

namespace interp {

struct PixelColour {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;
};

// In pixels; right and bottom are the first that are not part of it.
struct Rectangle {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
};

struct Point {
  double x = 0;
  double y = 0;
};

void FillRectangle(const Rectangle& rectangle, PixelColour colour, Picture<uint8_t>& picture);

// The border of a rectangle, inside of it.
void DrawFrame(const Rectangle& rectangle, int thickness, PixelColour colour,
               Picture<uint8_t>& picture);

// REQUIRES: points within 1e9 of 0. Costs at most the longer side of the picture times thickness^2.
void DrawLine(Point from, Point to, int thickness, PixelColour colour, Picture<uint8_t>& picture);

// Text of UTF-8 in one line, each pixel of the font (glyphs.h) `scale` pixels wide and high; '?'
// stands for what the font lacks.
int TextWidth(absl::string_view text, int scale);
int TextHeight(int scale);
void DrawText(absl::string_view text, int left, int top, int scale, PixelColour colour,
              Picture<uint8_t>& picture);

}  // namespace interp
