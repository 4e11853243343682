// What the random ops share. An op with a `seed` of its own draws like Paddle on a CPU, one number
// after the other from std::mt19937_64; all others draw element by element from their stream.
#pragma once

#include <cstdint>
#include <random>

#include "core/op_def.h"
#include "core/resource/distributions.h"
#include "kernels/util/parallel_for.h"

namespace interp::random {

// Paddle hands its int32 seed to the engine as it is.
inline std::mt19937_64 SeededEngine(int32_t seed) {
  return std::mt19937_64(static_cast<uint64_t>(static_cast<int64_t>(seed)));
}

// The 64 bits of element i, for ops that go through their elements one by one.
inline uint64_t BitsOf(const RandomStream& stream, int64_t i) {
  return Bits64(stream.Block(static_cast<uint64_t>(i) / 2), static_cast<int>(i % 2));
}

// Blocks below which one thread wins.
inline constexpr int64_t kBlockGrain = 4096;

// Calls body(first, count, block) for each block of the stream, where elements [first, first +
// count) are those of this block: `per_block` of them, fewer in the last. body must not throw.
template <int per_block, typename Body>
void ForEachBlock(const KernelContext& ctx, int64_t n, const Body& body) {
  const RandomStream stream = ctx.random();
  const int64_t blocks = n / per_block + (n % per_block != 0 ? 1 : 0);
  ParallelFor(ctx.num_threads(), blocks, kBlockGrain, [=](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * per_block;
      const int64_t count = n - first < per_block ? n - first : per_block;
      body(first, static_cast<int>(count), stream.Block(static_cast<uint64_t>(block)));
    }
  });
}

// Calls body(i, bits) with 32 or 64 random bits for each element.
template <typename Body>
void ForEachBits32(const KernelContext& ctx, int64_t n, const Body& body) {
  ForEachBlock<4>(ctx, n, [=](int64_t first, int count, const PhiloxBlock& block) {
    for (int k = 0; k < count; ++k) body(first + k, block[k]);
  });
}
template <typename Body>
void ForEachBits64(const KernelContext& ctx, int64_t n, const Body& body) {
  ForEachBlock<2>(ctx, n, [=](int64_t first, int count, const PhiloxBlock& block) {
    for (int k = 0; k < count; ++k) body(first + k, Bits64(block, k));
  });
}

}  // namespace interp::random
