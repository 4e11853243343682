#include "core/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace interp {
namespace {

// The value of a binary16 by its definition.
double HalfByDefinition(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10) & 31;
  const double fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Float16Test, EveryValueConvertsByDefinition) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = float16::ToFloat(static_cast<uint16_t>(bits));
    const double want = HalfByDefinition(bits);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
    } else {
      ASSERT_EQ(value, want) << bits;
      ASSERT_EQ(std::signbit(value), bits >= 0x8000) << bits;
    }
  }
}

TEST(Float16Test, EveryValueSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = float16::ToFloat(static_cast<uint16_t>(bits));
    const uint16_t back = float16::FromFloat(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(float16::ToFloat(back))) << bits;
    } else {
      ASSERT_EQ(back, bits);
    }
  }
}

// Between two neighbours: the nearer one; the even one from the middle.
TEST(Float16Test, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const auto low = static_cast<uint16_t>(bits);
    const auto high = static_cast<uint16_t>(bits + 1);
    const float middle = (float16::ToFloat(low) + float16::ToFloat(high)) / 2;  // exact
    ASSERT_EQ(float16::FromFloat(middle), low % 2 == 0 ? low : high) << bits;
    ASSERT_EQ(float16::FromFloat(std::nextafter(middle, 0.0f)), low) << bits;
    ASSERT_EQ(float16::FromFloat(std::nextafter(middle, HUGE_VALF)), high) << bits;
    ASSERT_EQ(float16::FromFloat(-middle), (low % 2 == 0 ? low : high) | 0x8000) << bits;
  }
}

TEST(Float16Test, OverflowsToInfinityFromTheMiddleOn) {
  EXPECT_EQ(float16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(float16(std::nextafter(65520.0f, 0.0f)).bits, 0x7bff);
  EXPECT_EQ(float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(float16(-65520.0f).bits, 0xfc00);
  EXPECT_EQ(float16(std::numeric_limits<float>::max()).bits, 0x7c00);
  EXPECT_EQ(float16(std::numeric_limits<float>::infinity()).bits, 0x7c00);
}

TEST(BFloat16Test, EveryValueSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    bfloat16 half;
    half.bits = static_cast<uint16_t>(bits);
    const float value = half;
    ASSERT_EQ(std::bit_cast<uint32_t>(value), bits << 16);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(bfloat16(value)))) << bits;
    } else {
      ASSERT_EQ(bfloat16(value).bits, bits);
    }
  }
}

TEST(BFloat16Test, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const auto middle = std::bit_cast<float>(bits << 16 | 0x8000);
    const auto below = std::bit_cast<float>(bits << 16 | 0x7fff);
    const auto above = std::bit_cast<float>(bits << 16 | 0x8001);
    ASSERT_EQ(bfloat16(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(bfloat16(below).bits, bits);
    ASSERT_EQ(bfloat16(above).bits, bits + 1);
  }
}

// The payload of this NaN lies in the half that is dropped.
TEST(BFloat16Test, KeepsNaN) {
  const auto nan = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(nan))));
}

}  // namespace
}  // namespace interp
