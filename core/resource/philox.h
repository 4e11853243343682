// Philox4x32-10: a random number generator without state.
//
// Block i of a key is a function of (key, i) alone: ten rounds of multiplication and exclusive or
// turn a 128-bit counter into 128 random bits (Salmon, Moraes, Dror, Shaw, "Parallel Random
// Numbers: As Easy as 1, 2, 3", SC'11). Any thread can make any block, in any order; counters and
// keys that differ by one give unrelated blocks. It passes TestU01's BigCrush, and is what cuRAND,
// PyTorch and TensorFlow use on devices, so that a device's kernel can draw the same numbers.
#pragma once

#include <array>
#include <cstdint>

namespace interp {

using PhiloxBlock = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

constexpr PhiloxBlock Philox4x32(PhiloxBlock counter, PhiloxKey key) {
  constexpr int kRounds = 10;
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;  // the golden ratio
  constexpr uint32_t kWeyl1 = 0xBB67AE85;  // the square root of three less one
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

}  // namespace interp
