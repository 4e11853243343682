// Holds erf, gelu and its slope over rows to double functions of the standard library, and to
// giving an element the same bits wherever it stands.
#include "kernels/util/erf_rows.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "kernels/util/vector_math.h"

namespace interp::testing::erf_rows_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Bit patterns of float a prime apart, NaN left out, and values where formulas change.
std::vector<float> Samples() {
  std::vector<float> x = {0.0F, -0.0F, 3.999F, 4.0F, 4.001F, -4.1F, 5.9F, 6.0F, -6.1F, 1e-45F};
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isfinite(value)) x.push_back(value);
  }
  for (int i = -7000; i <= 7000; ++i) x.push_back(static_cast<float>(i) * 1e-3F);
  return x;
}

double NormalBelow(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double Slope(double x) {
  const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return NormalBelow(x) + (density == 0 ? 0 : x * density);
}

std::vector<float> Gelu(std::vector<float> x) {
  GeluRow(x.data(), x.data(), static_cast<int64_t>(x.size()));
  return x;
}

std::vector<float> GeluGrad(std::vector<float> x, const std::vector<float>& grad) {
  GeluGradRow(x.data(), grad.data(), x.data(), static_cast<int64_t>(x.size()));
  return x;
}

TEST(ErfRows, ErfIsAccurate) {
  const std::vector<float> x = Samples();
  std::vector<float> got(x.size());
  ErfRow(x.data(), got.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    const auto want = static_cast<float>(std::erf(double{x[i]}));
    const float ulp = std::nextafter(std::abs(want), kInfinity) - std::abs(want);
    ASSERT_LE(std::abs(got[i] - want), kVectorMathMaxUlp * ulp) << "at " << x[i];
    ASSERT_EQ(std::signbit(got[i]), std::signbit(x[i])) << "at " << x[i];
  }
}

TEST(ErfRows, GeluIsAccurate) {
  const std::vector<float> x = Samples();
  const std::vector<float> got = Gelu(x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = x[i] * NormalBelow(x[i]);
    ASSERT_LE(std::abs(got[i] - want), 1.5e-7 * std::max(std::abs(x[i]), 1e-30F)) << "at " << x[i];
  }
}

TEST(ErfRows, SlopeOfGeluIsAccurate) {
  const std::vector<float> x = Samples();
  const std::vector<float> got = GeluGrad(x, std::vector<float>(x.size(), 1.0F));
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(got[i], Slope(x[i]), 2e-7) << "at " << x[i];
}

TEST(ErfRows, TakesInfinitiesAndNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {kInfinity, -kInfinity, nan, -nan};
  std::vector<float> erf(4);
  ErfRow(x.data(), erf.data(), 4);
  const std::vector<float> gelu = Gelu(x);
  EXPECT_EQ(erf[0], 1.0F);
  EXPECT_EQ(erf[1], -1.0F);
  EXPECT_EQ(gelu[0], kInfinity);
  EXPECT_TRUE(std::isnan(gelu[1]));
  for (const int i : {2, 3}) {
    EXPECT_TRUE(std::isnan(erf[i]));
    EXPECT_TRUE(std::isnan(gelu[i]));
    EXPECT_TRUE(std::isnan(GeluGrad(x, {1, 1, 1, 1})[i]));
  }
  EXPECT_EQ(Gelu({7e37F, -3e38F}), (std::vector<float>{7e37F, 0}));
  // The slope of what is far below 0 is below 0.
  EXPECT_EQ(GeluGrad({kInfinity, -kInfinity, 3e38F, -3e38F}, {2, kInfinity, 2, kInfinity}),
            (std::vector<float>{2, -kInfinity, 2, -kInfinity}));
}

TEST(ErfRows, ElementsDoNotDependOnTheirPlace) {
  std::vector<float> x(67);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.17F * static_cast<float>(i) - 5.5F;
  const std::vector<float> whole = Gelu(x);
  const std::vector<float> grads = GeluGrad(x, x);
  for (size_t n = 0; n <= x.size(); ++n) {
    const std::vector<float> part(x.end() - static_cast<int64_t>(n), x.end());
    const std::vector<float> gelu = Gelu(part);
    const std::vector<float> grad = GeluGrad(part, part);
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(gelu[i], whole[x.size() - n + i]);
      ASSERT_EQ(grad[i], grads[x.size() - n + i]);
    }
  }
}

}  // namespace
}  // namespace interp::testing::erf_rows_test
