// The numbers of a std::mt19937_64 and what distributions of the standard library make of them.
// Included by `.cu` files alone.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/launch.h"

namespace interp::cuda {

// std::mt19937_64 (Nishimura, "Tables of 64-bit Mersenne twisters", 2000).
inline constexpr int kTwisterState = 312;
inline constexpr int kTwisterHalf = kTwisterState / 2;
inline constexpr int kTwisterThreads = 160;

__device__ inline void SeedTwister(uint64_t seed, uint64_t* state) {
  state[0] = seed;
  for (int i = 1; i < kTwisterState; ++i) {
    const uint64_t last = state[i - 1];
    state[i] = 6364136223846793005ull * (last ^ (last >> 62)) + static_cast<uint64_t>(i);
  }
}

// The new word `i`; one half of the state at a time, as words need new ones of the other half.
__device__ inline uint64_t Twist(const uint64_t* state, int i) {
  constexpr uint64_t kUpper = 0xFFFFFFFF80000000ull;
  const uint64_t mixed = (state[i] & kUpper) | (state[(i + 1) % kTwisterState] & ~kUpper);
  return state[(i + kTwisterHalf) % kTwisterState] ^ (mixed >> 1) ^
         ((mixed & 1) != 0 ? 0xB5026F5AA96619E9ull : 0);
}

// The number that a word of the state is given out as.
__device__ inline uint64_t Temper(uint64_t word) {
  word ^= (word >> 29) & 0x5555555555555555ull;
  word ^= (word << 17) & 0x71D67FFFEDA60000ull;
  word ^= (word << 37) & 0xFFF7EEE000000000ull;
  return word ^ (word >> 43);
}

// Makes the words [begin, begin + kTwisterHalf) of the state anew, of which thread t gets the
// number of word begin + t; threads beyond get 0. `begin` is 0 or kTwisterHalf, in turn.
// REQUIRES: all threads of a block of kTwisterThreads call it.
__device__ inline uint64_t NextHalf(uint64_t* state, int begin) {
  const int t = threadIdx.x;
  const uint64_t word = t < kTwisterHalf ? Twist(state, begin + t) : 0;
  __syncthreads();  // all have read what is written now
  if (t < kTwisterHalf) state[begin + t] = word;
  __syncthreads();
  return Temper(word);
}

// Calls body(i, number) for the first `size` numbers of a seed as the engine takes it.
// REQUIRES: all threads of a block of kTwisterThreads call it.
template <typename Body>
__device__ void ForEachWord(int64_t seed, int64_t size, const Body& body) {
  INTERP_SHARED(uint64_t, state, [kTwisterState]);
  const int t = threadIdx.x;
  if (t == 0) SeedTwister(static_cast<uint64_t>(seed), state);
  __syncthreads();
  for (int64_t first = 0; first < size; first += kTwisterState) {
    for (int begin = 0; begin < kTwisterState; begin += kTwisterHalf) {
      const uint64_t number = NextHalf(state, begin);
      const int64_t i = first + begin + t;
      if (t < kTwisterHalf && i < size) body(i, number);
    }
  }
}

// As std::generate_canonical makes of 64 bits, in [0, 1).
__device__ inline float CanonicalFloat(uint64_t number) {
  const float unit = static_cast<float>(number) * 0x1p-64f;
  return unit < 1.0f ? unit : 0x1.fffffep-1f;
}
__device__ inline double CanonicalDouble(uint64_t number) {
  const double unit = static_cast<double>(number) * 0x1p-64;
  return unit < 1.0 ? unit : 0x1.fffffffffffffp-1;
}
template <typename T>
__device__ T Canonical(uint64_t number) {
  if constexpr (sizeof(T) == sizeof(double)) return CanonicalDouble(number);
  return CanonicalFloat(number);
}

// Calls body(i, normal) for the first `size` numbers that a std::normal_distribution<T> of
// libstdc++ makes of a seed's engine, by Marsaglia's polar method: of each pair of numbers that is
// a point of the unit disc it makes two. REQUIRES: as ForEachWord; compiled without contraction,
// so that the same pairs are taken.
template <typename T, typename Body>
__device__ void ForEachNormal(int64_t seed, int64_t size, const Body& body) {
  constexpr int kPairs = kTwisterHalf / 2;
  INTERP_SHARED(uint64_t, state, [kTwisterState]);
  INTERP_SHARED(T, points, [kTwisterHalf]);
  INTERP_SHARED(int, taken, [kPairs]);
  const int t = threadIdx.x;
  if (t == 0) SeedTwister(static_cast<uint64_t>(seed), state);
  __syncthreads();
  int begin = 0;
  for (int64_t done = 0; done < size; begin = kTwisterHalf - begin) {
    const uint64_t number = NextHalf(state, begin);
    if (t < kTwisterHalf) points[t] = T{2} * Canonical<T>(number) - T{1};
    __syncthreads();
    const T x = t < kPairs ? points[2 * t] : T{0};
    const T y = t < kPairs ? points[2 * t + 1] : T{0};
    const T square = x * x + y * y;
    if (t < kPairs) taken[t] = square <= T{1} && square != T{0} ? 1 : 0;
    __syncthreads();
    int before = 0;
    int all = 0;
    for (int i = 0; i < kPairs; ++i) {
      before += i < t ? taken[i] : 0;
      all += taken[i];
    }
    if (t < kPairs && taken[t] != 0) {
      const T scale = std::sqrt(T{-2} * std::log(square) / square);
      const int64_t i = done + 2 * before;
      if (i < size) body(i, y * scale);
      if (i + 1 < size) body(i + 1, x * scale);
    }
    done += 2 * all;
  }
}

}  // namespace interp::cuda
