// From random bits to numbers of a distribution. Each takes a fixed number of bits, so that element
// i of a tensor needs no other element: no rejection, no state.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/resource/philox.h"

namespace interp {

// Words 2 * i and 2 * i + 1 of a block as one number, i in {0, 1}.
constexpr uint64_t Bits64(const PhiloxBlock& block, int i) {
  return uint64_t{block[2 * i]} | (uint64_t{block[2 * i + 1]} << 32);
}

// Uniform in [0, 1): multiples of 2^-24 and 2^-53, what the types hold exactly.
constexpr float UnitFloat(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }
constexpr double UnitDouble(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// Uniform in (0, 1), symmetric about 1/2: for logarithms and quantiles.
constexpr double OpenUnit(uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }
constexpr double OpenUnit(uint64_t bits) {
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

// Uniform in {0, ..., n - 1}. No value is favoured by more than n / 2^64 of its probability.
constexpr uint64_t Below(uint64_t bits, uint64_t n) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * n) >> 64);
}

// `bits` is less than this with probability p; for p in [0, 1].
inline uint64_t Threshold32(double p) { return static_cast<uint64_t>(std::ceil(p * 0x1p32)); }

// Two independent normal numbers of mean 0 and variance 1 (Box and Muller, 1958). `Bits` is
// uint32_t for float, which reaches to 6.7, and uint64_t for double, to 8.6.
template <typename T, typename Bits>
constexpr std::pair<T, T> NormalPair(Bits radius, Bits angle) {
  constexpr T kScale = sizeof(Bits) == 4 ? T(0x1p-32) : T(0x1p-64);
  constexpr T kTwoPi = T(6.283185307179586);
  const T unit = static_cast<T>(OpenUnit(radius));
  const T r = std::sqrt(T(-2) * std::log(unit));
  // As a signed number the angle lies in [-pi, pi), where its rounding error is least.
  using Signed = std::conditional_t<sizeof(Bits) == 4, int32_t, int64_t>;
  const T phi = kTwoPi * (static_cast<T>(static_cast<Signed>(angle)) * kScale);
  return {r * std::cos(phi), r * std::sin(phi)};
}

// x with P(N <= x) = p for a normal N of mean 0 and variance 1; p in (0, 1). Relative error about
// 1e-16 (Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", 1988).
double NormalQuantile(double p);

}  // namespace interp
