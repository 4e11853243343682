// Holds the logistic function and swish over rows to double functions of the standard library, and
// to giving an element the same bits wherever it stands.
#include "kernels/util/logistic_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/util/vector_math.h"

namespace interp::testing::logistic_rows_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Bit patterns of float a prime apart, NaN left out, and values where exponents change.
std::vector<float> Samples() {
  std::vector<float> x = {0.0F, -0.0F, 87.0F, -87.5F, 88.8F, -103.9F, -104.1F, 106.0F, 1e-45F};
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isfinite(value)) x.push_back(value);
  }
  for (int i = -30000; i <= 30000; ++i) x.push_back(static_cast<float>(i) * 1e-3F);
  return x;
}

// One step of the last place, of subnormal numbers too.
float StepAt(float value) { return std::nextafter(std::abs(value), kInfinity) - std::abs(value); }

double Logistic(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

std::vector<float> Swish(float beta, std::vector<float> x) {
  SwishRow(beta, x.data(), x.data(), static_cast<int64_t>(x.size()));
  return x;
}

TEST(LogisticRows, SigmoidIsAccurate) {
  const std::vector<float> x = Samples();
  std::vector<float> got(x.size());
  SigmoidRow(x.data(), got.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    const auto want = static_cast<float>(Logistic(double{x[i]}));
    ASSERT_LE(std::abs(got[i] - want), kVectorMathMaxUlp * StepAt(want)) << "at " << x[i];
  }
}

TEST(LogisticRows, SwishIsAccurate) {
  const std::vector<float> x = Samples();
  for (const float beta : {1.0F, 1.702F, 0.0F, -0.5F}) {
    const std::vector<float> got = Swish(beta, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = double{x[i]} * Logistic(double{beta * x[i]});
      const auto rounded = static_cast<float>(want);
      // The rest of the logistic function below the normal numbers is lost before x multiplies it.
      const double lost = std::abs(double{x[i]}) * std::numeric_limits<float>::denorm_min();
      ASSERT_LE(std::abs(got[i] - want), double{kVectorMathMaxUlp} * StepAt(rounded) + lost)
          << "at " << x[i] << ", beta " << beta;
    }
  }
}

TEST(LogisticRows, TakeInfinitiesAndNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {kInfinity, -kInfinity, nan, -nan};
  std::vector<float> sigmoid(4);
  SigmoidRow(x.data(), sigmoid.data(), 4);
  EXPECT_EQ(sigmoid[0], 1);
  EXPECT_EQ(sigmoid[1], 0);
  EXPECT_TRUE(std::isnan(sigmoid[2]) && std::isnan(sigmoid[3]));
  const std::vector<float> swish = Swish(1, x);
  EXPECT_EQ(swish[0], kInfinity);
  EXPECT_TRUE(std::isnan(swish[1]));  // 0 times infinity
  EXPECT_TRUE(std::isnan(swish[2]) && std::isnan(swish[3]));
}

TEST(LogisticRows, AnElementHasTheSameBitsWhereverItStands) {
  std::vector<float> x;
  for (int i = 0; i < 67; ++i) x.push_back(static_cast<float>(i * i - 900) * 0.01F);
  const std::vector<float> whole = Swish(1, x);
  for (size_t first = 0; first < x.size(); ++first) {
    for (const size_t count : {size_t{1}, size_t{7}, size_t{16}, size_t{33}}) {
      const size_t last = std::min(x.size(), first + count);
      const auto at = [&](size_t i) { return x.begin() + static_cast<int64_t>(i); };
      const std::vector<float> part = Swish(1, {at(first), at(last)});
      for (size_t i = first; i < last; ++i) ASSERT_EQ(part[i - first], whole[i]) << first;
    }
  }
}

TEST(LogisticRows, WriteNothingBeyondTheRow) {
  for (int64_t n = 0; n < 40; ++n) {
    std::vector<float> x(static_cast<size_t>(n), 1.0F);
    std::vector<float> out(static_cast<size_t>(n) + 1, -7.0F);
    SwishRow(1, x.data(), out.data(), n);
    SigmoidRow(x.data(), out.data(), n);
    EXPECT_EQ(out.back(), -7.0F) << n;
  }
}

}  // namespace
}  // namespace interp::testing::logistic_rows_test
