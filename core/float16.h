// Storage types of 16-bit floats. Arithmetic is done in float: both convert implicitly to and from
// float, rounding to nearest even. Bit layouts: IEEE 754 binary16; bfloat16 is the upper half of a
// binary32.
#pragma once

#include <bit>
#include <cstdint>

namespace interp {

struct float16 {
  uint16_t bits = 0;

  float16() = default;
  float16(float value) : bits(FromFloat(value)) {}  // NOLINT(google-explicit-constructor)
  operator float() const { return ToFloat(bits); }  // NOLINT(google-explicit-constructor)

  static uint16_t FromFloat(float value) {
    const uint32_t f = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (f >> 16) & 0x8000u;
    const uint32_t magnitude = f & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // NaN
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to inf
    if (magnitude < 0x38800000u) {  // subnormal or zero: let float addition do the rounding
      const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
    }
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }

  static float ToFloat(uint16_t h) {
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
    const uint32_t magnitude = h & 0x7fffu;
    if (magnitude >= 0x7c00u) {
      return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
    }
    if (magnitude < 0x0400u) {  // subnormal: value is magnitude * 2^-24
      const float value = static_cast<float>(magnitude) * 0x1p-24f;
      return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
    }
    return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  }
};

struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  bfloat16(float value) : bits(FromFloat(value)) {}  // NOLINT(google-explicit-constructor)
  operator float() const {                           // NOLINT(google-explicit-constructor)
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }

  static uint16_t FromFloat(float value) {
    const uint32_t f = std::bit_cast<uint32_t>(value);
    if ((f & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((f >> 16) | 0x40u);
    return static_cast<uint16_t>((f + 0x7fffu + ((f >> 16) & 1u)) >> 16);
  }
};

static_assert(sizeof(float16) == 2 && sizeof(bfloat16) == 2);

}  // namespace interp
