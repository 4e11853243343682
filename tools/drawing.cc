#include "tools/drawing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/glyphs.h"

namespace interp {
namespace {

using Bytes = Picture<uint8_t>;

// A byte of UTF-8 that goes on with the character before it.
bool IsContinuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

}  // namespace

void FillRectangle(const Rectangle& rectangle, PixelColour colour, Bytes& picture) {
  const int left = std::max(rectangle.left, 0);
  const int right = std::min(rectangle.right, picture.width);
  const int bottom = std::min(rectangle.bottom, picture.height);
  for (int y = std::max(rectangle.top, 0); y < bottom; ++y) {
    uint8_t* pixel =
        picture.pixels.data() + (static_cast<size_t>(y) * picture.width + left) * Bytes::kChannels;
    for (int x = left; x < right; ++x) {
      *pixel++ = colour.red;
      *pixel++ = colour.green;
      *pixel++ = colour.blue;
    }
  }
}

void DrawFrame(const Rectangle& r, int thickness, PixelColour colour, Bytes& picture) {
  const int top = std::min(r.top + thickness, r.bottom);
  const int bottom = std::max(r.bottom - thickness, r.top);
  const int left = std::min(r.left + thickness, r.right);
  const int right = std::max(r.right - thickness, r.left);
  FillRectangle({r.left, r.top, r.right, top}, colour, picture);
  FillRectangle({r.left, bottom, r.right, r.bottom}, colour, picture);
  FillRectangle({r.left, r.top, left, r.bottom}, colour, picture);
  FillRectangle({right, r.top, r.right, r.bottom}, colour, picture);
}

void DrawLine(Point from, Point to, int thickness, PixelColour colour, Bytes& picture) {
  // A square at each step along the axis on which the line is longer.
  const bool steep = std::abs(to.y - from.y) > std::abs(to.x - from.x);
  if (steep) {
    std::swap(from.x, from.y);
    std::swap(to.x, to.y);
  }
  if (from.x > to.x) std::swap(from, to);
  const double length = steep ? picture.height : picture.width;
  const double breadth = steep ? picture.width : picture.height;
  const double slope = to.x > from.x ? (to.y - from.y) / (to.x - from.x) : 0;
  const double first = std::max(std::floor(from.x), -1.0 * thickness);
  const double last = std::min(to.x, length + thickness);
  for (double step = first; step <= last; ++step) {
    const double side = from.y + (std::max(step, from.x) - from.x) * slope;
    const double bounded = std::clamp(side, -2.0 * thickness, breadth + 2.0 * thickness);
    int x = static_cast<int>(step) - thickness / 2;
    int y = static_cast<int>(std::floor(bounded)) - thickness / 2;
    if (steep) std::swap(x, y);
    FillRectangle({x, y, x + thickness, y + thickness}, colour, picture);
  }
}

int TextWidth(absl::string_view text, int scale) {
  const auto continuations = std::count_if(text.begin(), text.end(), IsContinuation);
  return static_cast<int>(std::ssize(text) - continuations) * kGlyphWidth * scale;
}

int TextHeight(int scale) { return kGlyphHeight * scale; }

void DrawText(absl::string_view text, int left, int top, int scale, PixelColour colour,
              Bytes& picture) {
  for (const char character : text) {
    if (IsContinuation(character)) continue;
    const Glyph& glyph = GlyphOf(character);
    for (int row = 0; row < kGlyphHeight; ++row) {
      for (int column = 0; column < kGlyphWidth; ++column) {
        if ((glyph[row] & (0x80 >> column)) == 0) continue;
        const int x = left + column * scale;
        const int y = top + row * scale;
        FillRectangle({x, y, x + scale, y + scale}, colour, picture);
      }
    }
    left += kGlyphWidth * scale;
  }
}

}  // namespace interp
