// Holds rows of floats as bfloat16 to the bits of single numbers.
#include "kernels/util/bfloat16_rows.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace interp {
namespace {

std::vector<bfloat16> Converted(const std::vector<float>& x) {
  std::vector<bfloat16> out(x.size());
  ToBfloat16Row(x.data(), out.data(), static_cast<int64_t>(x.size()));
  return out;
}

// Bit patterns a prime apart, NaN of both signs among them, and those beside a tie.
TEST(Bfloat16Rows, HaveTheBitsOfSingleNumbers) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 1021) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (const uint32_t high : {0x0000U, 0x0001U, 0x3f80U, 0x3f81U, 0x7f7fU, 0xff7fU, 0x7f80U}) {
    for (const uint32_t low : {0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      x.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  const std::vector<bfloat16> got = Converted(x);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(got[i].bits, bfloat16(x[i]).bits) << std::hex << std::bit_cast<uint32_t>(x[i]);
  }
}

TEST(Bfloat16Rows, WriteNothingBeyondTheRow) {
  for (int64_t n = 0; n < 40; ++n) {
    const std::vector<float> x(static_cast<size_t>(n), 1.0F);
    std::vector<bfloat16> out(static_cast<size_t>(n) + 1, bfloat16(-7.0F));
    ToBfloat16Row(x.data(), out.data(), n);
    EXPECT_EQ(static_cast<float>(out.back()), -7.0F) << n;
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(static_cast<float>(out[i]), 1.0F);
  }
}

}  // namespace
}  // namespace interp
