// Exponential, logarithm and their relatives for loops over float.
//
// The float overloads have no branch, no table and no call: the compiler turns a loop over them
// into vector code. They agree with the correctly rounded result to kVectorMathMaxUlp units in the
// last place, infinities, NaN and subnormal numbers included; vector_math_test holds them to that
// over all of float. The polynomials are minimax fits on the interval named beside them. The
// double overloads are the standard library's.
//
// Range reduction adds kToInteger, which leaves the nearest integer in the low bits of the sum. It
// never converts a float to an integer, which would be undefined for NaN.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace interp {

inline constexpr int kVectorMathMaxUlp = 3;

namespace vector_math {

inline constexpr float kToInteger = 0x1.8p23f;
inline constexpr float kLog2E = 1.44269504088896341f;
// ln 2 in two parts; the first has few enough bits that its product with an exponent is exact.
inline constexpr float kLn2Hi = 0.693359375f;
inline constexpr float kLn2Lo = -2.12194440054690583e-4f;
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// What F, a float or a vector of them, is as unsigned integers.
template <typename F>
struct BitsOf {
  typedef uint32_t type __attribute__((vector_size(sizeof(F))));
};
template <>
struct BitsOf<float> {
  using type = uint32_t;
};

// 2^n for n in [-126, 127].
template <typename F = float>
F PowerOfTwo(typename BitsOf<F>::type n) {
  return std::bit_cast<F>((n + 127u) << 23);
}

// x = n ln2 + r with |r| <= ln2 / 2; n also as an integer, in two's complement.
template <typename F>
struct ReducedExponent {
  F r;
  typename BitsOf<F>::type n;
};
template <typename F>
ReducedExponent<F> ReduceExponent(F x) {
  const F shifted = x * kLog2E + kToInteger;
  const F n = shifted - kToInteger;
  const F r = (x - n * kLn2Hi) - n * kLn2Lo;
  return {r,
          std::bit_cast<typename BitsOf<F>::type>(shifted) - std::bit_cast<uint32_t>(kToInteger)};
}

// (e^r - 1 - r) / r^2 for |r| <= ln2 / 2, the highest power first.
inline constexpr float kExpTerms[] = {1.381446674e-3f, 8.368780429e-3f, 4.166839422e-2f,
                                      1.666652011e-1f, 4.999999341e-1f};

// e^r for |r| <= ln2 / 2.
template <typename F>
F ExpOfRest(F r) {
  F p = r * kExpTerms[0] + kExpTerms[1];
  for (int i = 2; i < 5; ++i) p = p * r + kExpTerms[i];
  return p * r * r + r + 1.0f;
}

// e^r - 1 for |r| <= ln2 / 2.
inline float Expm1OfRest(float r) {
  float p = 1.394072006e-3f;  // (e^r - 1 - r) / r^2
  p = 1.984588519e-4f * r + p;
  p = p * r + 8.333389572e-3f;
  p = p * r + 4.166635982e-2f;
  p = p * r + 1.666666637e-1f;
  p = p * r + 5.000000044e-1f;
  return p * r * r + r;
}

}  // namespace vector_math

// Exp of NaN or a number in [-87, 88], where neither it nor a factor of it leaves the normal
// numbers: a third less to compute. F is float or a vector of floats.
template <typename F>
[[gnu::always_inline]] inline F ExpInRange(F x) {
  const auto [r, n] = vector_math::ReduceExponent(x);
  return vector_math::ExpOfRest(r) * vector_math::PowerOfTwo<F>(n);
}

inline float Exp(float x) {
  using namespace vector_math;  // NOLINT(google-build-using-namespace)
  x = x > 89.0f ? 89.0f : x;    // above: infinity; the comparisons let NaN through
  x = x < -104.0f ? -104.0f : x;
  const auto [r, n] = ReduceExponent(x);
  const float e = ExpOfRest(r);
  // n reaches from -150 to 128, beyond the exponents of float on both sides: scale in two steps.
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(n) >> 1);
  return e * PowerOfTwo(half) * PowerOfTwo(n - half);
}

// e^x - 1 without cancellation near 0.
inline float Expm1(float x) {
  using namespace vector_math;  // NOLINT(google-build-using-namespace)
  const float at = x > 89.0f ? 89.0f : (x < -20.0f ? -20.0f : x);
  const auto [r, n] = ReduceExponent(at);
  const float e = Expm1OfRest(r);
  const float half_scale = PowerOfTwo(n - 1u);  // half of 2^n, as 2^128 does not exist
  const float y = 2.0f * (half_scale * e + (half_scale - 0.5f));
  return x == 0.0f ? x : y;  // keeps -0
}

inline float Log(float x) {
  using namespace vector_math;  // NOLINT(google-build-using-namespace)
  const bool subnormal = x < std::numeric_limits<float>::min();
  const float normal = subnormal ? x * 0x1p23f : x;
  // normal = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
  constexpr uint32_t kSqrtHalf = 0x3f3504f3u;
  const uint32_t offset = std::bit_cast<uint32_t>(normal) - kSqrtHalf;
  const int32_t exponent = static_cast<int32_t>(offset) >> 23;
  const float e = static_cast<float>(exponent) - (subnormal ? 23.0f : 0.0f);
  const float f = std::bit_cast<float>((offset & 0x007fffffu) + kSqrtHalf) - 1.0f;
  float p = -7.634493017e-2f;  // (log(1 + f) - f + f^2 / 2) / f^3
  p = p * f + 1.276157564e-1f;
  p = p * f - 1.316018306e-1f;
  p = p * f + 1.420175823e-1f;
  p = p * f - 1.662335730e-1f;
  p = p * f + 2.000122687e-1f;
  p = p * f - 2.500082104e-1f;
  p = p * f + 3.333333171e-1f;
  const float square = f * f;
  const float small = p * f * square - 0.5f * square + e * kLn2Lo;
  float y = small + f + e * kLn2Hi;
  y = x < kInfinity ? y : x;  // infinity and NaN
  y = x < 0.0f ? std::numeric_limits<float>::quiet_NaN() : y;
  return x == 0.0f ? -kInfinity : y;
}

// log(1 + x) without cancellation near 0.
inline float Log1p(float x) {
  const float u = 1.0f + x;
  const float rest = (x - (u - 1.0f)) / u;  // what rounding took from u, relative to u
  const bool finite = u > 0.0f && u < vector_math::kInfinity;
  const float y = Log(u) + (finite ? rest : 0.0f);
  return x == 0.0f ? x : y;
}

inline float Tanh(float x) {
  using namespace vector_math;  // NOLINT(google-build-using-namespace)
  const float magnitude = std::abs(x);
  const auto [r, n] = ReduceExponent(2.0f * (magnitude > 10.0f ? 10.0f : magnitude));
  const float scale = PowerOfTwo(n);
  const float t = scale * Expm1OfRest(r) + (scale - 1.0f);  // e^2|x| - 1
  return std::copysign(t / (t + 2.0f), x);
}

inline float Erf(float x) {
  const float magnitude = std::abs(x);
  const float t = magnitude > 4.0f ? 4.0f : magnitude;
  const float s = t * t;
  float p = -5.862123624e-4f;  // erf(t) / t - 1 in t^2, for t < 0.95
  p = p * s + 4.967517234e-3f;
  p = p * s - 2.674887379e-2f;
  p = p * s + 1.128132107e-1f;
  p = p * s - 3.761244600e-1f;
  p = p * s + 1.283791423e-1f;
  float q = -2.145950102e-4f;  // -log(1 - erf(t)) / t, for t in [0.9, 4]
  q = q * t + 3.219975404e-3f;
  q = q * t - 2.290603087e-2f;
  q = q * t + 1.052868542e-1f;
  q = q * t + 6.356993684e-1f;
  q = q * t + 1.128519953f;
  const float y = t < 0.93f ? p * t + t : 1.0f - ExpInRange(-q * t);
  return std::copysign(y, x);
}

// 1 / (1 + e^-x), with the exponential of a negative number only: it never overflows.
inline float Sigmoid(float x) {
  const float e = Exp(-std::abs(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

inline double Exp(double x) { return std::exp(x); }
inline double ExpInRange(double x) { return std::exp(x); }
inline double Expm1(double x) { return std::expm1(x); }
inline double Log(double x) { return std::log(x); }
inline double Log1p(double x) { return std::log1p(x); }
inline double Tanh(double x) { return std::tanh(x); }
inline double Erf(double x) { return std::erf(x); }
inline double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// The part of the normal distribution below x.
template <typename T>
T NormalBelow(T x) {
  return T(0.5) * (T{1} + Erf(x * (std::numbers::sqrt2_v<T> / 2)));
}

// x times the part of the normal distribution below it.
template <typename T>
T Gelu(T x) {
  return x * NormalBelow(x);
}

// The slope of Gelu. It is never quite 0 far below 0: infinity times it is not NaN.
template <typename T>
T GeluSlope(T x) {
  constexpr T kDensity = std::numbers::inv_sqrtpi_v<T> * (std::numbers::sqrt2_v<T> / 2);
  constexpr T kFar = 13;  // where the density is next to nothing, but not 0
  const T near = x > kFar ? kFar : (x < -kFar ? -kFar : x);
  return NormalBelow(x) + near * (kDensity * ExpInRange(T(-0.5) * near * near));
}

}  // namespace interp
