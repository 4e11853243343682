#include "tools/examples/digits.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/testing/matchers.h"

namespace interp::examples {
namespace {

using testing::IsOk;
using testing::SameBits;

TEST(DigitsTest, AreGrayPicturesWithLabels) {
  const absl::StatusOr<Digits> digits = DrawDigits(200, 1);
  ASSERT_THAT(digits, IsOk());
  EXPECT_EQ(DescribeType(digits->images), "float32[200,1,28,28]");
  EXPECT_EQ(DescribeType(digits->labels), "int64[200,1]");
  int64_t counts[10] = {};
  for (int64_t i = 0; i < 200; ++i) {
    const float* picture = digits->images.data<float>() + i * kDigitSize * kDigitSize;
    const auto [darkest, brightest] =
        std::minmax_element(picture, picture + kDigitSize * kDigitSize);
    EXPECT_EQ(*darkest, 0);
    EXPECT_GT(*brightest, 0.7);
    EXPECT_LE(*brightest, 1);
    ++counts[digits->labels.data<int64_t>()[i]];
  }
  EXPECT_GT(*std::min_element(counts, counts + 10), 5);
}

TEST(DigitsTest, TheSeedDecidesThem) {
  const absl::StatusOr<Digits> digits = DrawDigits(3, 1);
  const absl::StatusOr<Digits> again = DrawDigits(3, 1);
  const absl::StatusOr<Digits> others = DrawDigits(3, 2);
  ASSERT_TRUE(digits.ok() && again.ok() && others.ok());
  EXPECT_TRUE(SameBits(digits->images, again->images));
  EXPECT_TRUE(SameBits(digits->labels, again->labels));
  EXPECT_FALSE(SameBits(digits->images, others->images));
}

TEST(DigitsTest, RowsAreThoseOfTheSet) {
  const absl::StatusOr<Digits> digits = DrawDigits(5, 1);
  ASSERT_THAT(digits, IsOk());
  const Digits rows = Rows(*digits, 2, 4);
  EXPECT_EQ(DescribeType(rows.images), "float32[2,1,28,28]");
  EXPECT_EQ(rows.labels.data<int64_t>()[1], digits->labels.data<int64_t>()[3]);
  const int64_t picture = int64_t{kDigitSize} * kDigitSize;
  const float* third = digits->images.data<float>() + 2 * picture;
  EXPECT_TRUE(std::equal(third, third + 2 * picture, rows.images.data<float>()));
}

TEST(DigitsTest, ANegativeNumberIsAnError) { EXPECT_FALSE(DrawDigits(-1, 0).ok()); }

}  // namespace
}  // namespace interp::examples
