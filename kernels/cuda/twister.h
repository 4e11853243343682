// The numbers of a std::mt19937_64 and what distributions of the standard library make of them.
// Included by `.cu` files alone.
#pragma once

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
      const uint64_t word = t < kTwisterHalf ? Twist(state, begin + t) : 0;
      __syncthreads();  // all have read what is written now
      if (t < kTwisterHalf) state[begin + t] = word;
      __syncthreads();
      const int64_t i = first + begin + t;
      if (t < kTwisterHalf && i < size) body(i, Temper(word));
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

}  // namespace interp::cuda
