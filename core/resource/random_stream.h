// RandomStream: the random numbers of one op in one run, addressed instead of drawn one by one.
//
//   const RandomStream random = ctx.random();
//   const PhiloxBlock bits = random.Block(i / 4);  // bits[i % 4] belongs to element i
//
// Block i is Philox4x32-10 of the counter (i, step) under a key made of seed, stream and op. So
// which number an element gets depends on nothing else: not on threads, on the order of ops, on
// where they run or on what other ops draw. docs/resources.md says what is promised.
#pragma once

#include <cstdint>

#include "core/resource/philox.h"

namespace interp {

// What all random ops of a core draw from; saving it saves every stream.
struct RandomState {
  uint64_t seed = 0;
  uint64_t stream = 0;  // clones of one core draw from different streams
  uint64_t step = 0;    // the number of runs before this one
  bool operator==(const RandomState&) const = default;
};

// A seed that cannot be foreseen, never 0, from the system's entropy.
uint64_t EntropySeed();

// What an op's kernel needs to find its stream. `state` may change between runs.
struct RandomSource {
  const RandomState* state = nullptr;
  uint64_t op = 0;  // tells the ops of a program apart
};

// The finalizer of SplitMix64, a bijection: neighbours become unrelated, and nothing collides.
constexpr uint64_t MixBits(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// What ops of a block draw from in its n-th activation within one run of the op that runs it.
// `outer`: that op's state. Unrelated to the states of other blocks, activations and steps.
constexpr RandomState NestedRandomState(const RandomState& outer, uint64_t block,
                                        uint64_t activation) {
  return {.seed = outer.seed,
          .stream = MixBits(MixBits(MixBits(outer.stream) ^ outer.step) ^ block),
          .step = activation};
}

// Thread-safety: a value without state of its own; all methods are const.
class RandomStream {
 public:
  constexpr RandomStream(const RandomState& state, uint64_t op)
      : RandomStream(MixBits(MixBits(MixBits(state.seed) ^ state.stream) ^ op), state.step) {}

  // 128 random bits. Blocks of one stream are independent of each other and of those of every other
  // (seed, stream, step, op).
  constexpr PhiloxBlock Block(uint64_t block) const {
    return Philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                       static_cast<uint32_t>(step_), static_cast<uint32_t>(step_ >> 32)},
                      {static_cast<uint32_t>(key_), static_cast<uint32_t>(key_ >> 32)});
  }
  // Word `index` of the stream; four neighbours come at the price of one as a block.
  constexpr uint32_t Word(uint64_t index) const { return Block(index / 4)[index % 4]; }
  // A stream of its own, for an op that needs numbers of several kinds or an unknown number of them
  // per element. Splits of splits differ, too.
  constexpr RandomStream Split(uint64_t part) const {
    return RandomStream(MixBits(key_ ^ MixBits(part)), step_);
  }

 private:
  constexpr RandomStream(uint64_t key, uint64_t step) : key_(key), step_(step) {}
  uint64_t key_;
  uint64_t step_;
};

}  // namespace interp
