// Holds the float functions of vector_math.h to the double functions of the standard library, over
// samples of all bit patterns: normal and subnormal numbers, zeros, infinities and NaN.
#include "kernels/util/vector_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

namespace interp {
namespace {

// Distance of `got` from the exact `want` in units in the last place of float(want); 0 when both
// are NaN or the same infinity (values that round to infinity included).
double UlpError(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : HUGE_VAL;
  const float rounded = static_cast<float>(want);
  if (std::isinf(rounded) || std::isinf(got)) {
    const bool overflows = std::abs(want) >= std::numeric_limits<float>::max();
    return got == rounded || (std::isinf(got) && overflows) ? 0 : HUGE_VAL;
  }
  const float magnitude = std::abs(rounded);
  const double ulp = static_cast<double>(std::nextafter(magnitude, HUGE_VALF)) - magnitude;
  return std::abs(got - want) / ulp;
}

// Steps through the bit patterns of float by a prime, so that all exponents and both signs are met.
template <typename F, typename Reference>
void ExpectAccurateEverywhere(F f, Reference reference) {
  constexpr uint64_t kStep = 997;
  double worst = 0;
  float worst_at = 0;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += kStep) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const double error = UlpError(f(x), reference(static_cast<double>(x)));
    if (error > worst) worst = error, worst_at = x;
  }
  EXPECT_LE(worst, kVectorMathMaxUlp) << "at " << worst_at;
}

// The values where a formula is most likely to go wrong.
template <typename F, typename Reference>
void ExpectAccurateAtSpecialValues(F f, Reference reference) {
  for (const float x :
       {0.0f,           -0.0f,   1.0f,    -1.0f,  0.5f,    88.72283f,       88.72285f,
        -87.3f,         -103.9f, -104.1f, 1e-45f, -1e-45f, 1.17549435e-38f, 3.4028235e38f,
        -3.4028235e38f, 0.93f,   4.0f,    9.9f,   10.1f,   HUGE_VALF,       -HUGE_VALF,
        std::nanf("")}) {
    const float got = f(x);
    const double want = reference(static_cast<double>(x));
    EXPECT_LE(UlpError(got, want), kVectorMathMaxUlp)
        << "at " << x << ": " << got << " for " << want;
    EXPECT_TRUE(want != 0 || std::signbit(got) == std::signbit(want)) << "at " << x;
  }
}

template <typename F, typename Reference>
void ExpectAccurate(F f, Reference reference) {
  ExpectAccurateEverywhere(f, reference);
  ExpectAccurateAtSpecialValues(f, reference);
}

TEST(VectorMathTest, ExpAgreesWithDouble) {
  ExpectAccurate([](float x) { return Exp(x); }, [](double x) { return std::exp(x); });
}

TEST(VectorMathTest, ExpInRangeAgreesWithDouble) {
  const auto in_range = [](auto x) { return !(x < -87) && !(x > 88); };
  ExpectAccurateEverywhere([&](float x) { return in_range(x) ? ExpInRange(x) : 0.0f; },
                           [&](double x) { return in_range(x) ? std::exp(x) : 0.0; });
  for (const float x : {-87.0f, 88.0f, -0.0f, std::nanf("")}) {
    EXPECT_LE(UlpError(ExpInRange(x), std::exp(static_cast<double>(x))), kVectorMathMaxUlp) << x;
  }
}

TEST(VectorMathTest, Expm1AgreesWithDouble) {
  ExpectAccurate([](float x) { return Expm1(x); }, [](double x) { return std::expm1(x); });
}

TEST(VectorMathTest, LogAgreesWithDouble) {
  ExpectAccurate([](float x) { return Log(x); }, [](double x) { return std::log(x); });
}

TEST(VectorMathTest, Log1pAgreesWithDouble) {
  ExpectAccurate([](float x) { return Log1p(x); }, [](double x) { return std::log1p(x); });
}

TEST(VectorMathTest, TanhAgreesWithDouble) {
  ExpectAccurate([](float x) { return Tanh(x); }, [](double x) { return std::tanh(x); });
}

TEST(VectorMathTest, ErfAgreesWithDouble) {
  ExpectAccurate([](float x) { return Erf(x); }, [](double x) { return std::erf(x); });
}

TEST(VectorMathTest, SigmoidAgreesWithDouble) {
  ExpectAccurate([](float x) { return Sigmoid(x); },
                 [](double x) { return 1.0 / (1.0 + std::exp(-x)); });
}

}  // namespace
}  // namespace interp
