// A bitmap font: the printable characters of ASCII.
#pragma once

#include <array>
#include <cstdint>

namespace interp {

inline constexpr int kGlyphWidth = 6;
inline constexpr int kGlyphHeight = 13;

// Rows from the top; the highest bit is the leftmost pixel.
using Glyph = std::array<uint8_t, kGlyphHeight>;

// '?' for what is no printable character of ASCII.
const Glyph& GlyphOf(char character);

}  // namespace interp
