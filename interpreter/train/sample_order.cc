#include "interpreter/train/sample_order.h"

#include <algorithm>
#include <numeric>

#include "core/resource/random_stream.h"

namespace interp {
namespace {

// What is decided by random numbers; each draws from a stream of its own.
enum Decision : uint64_t { kAllDecision, kBlockDecision, kBufferDecision };

// From 0 to `count`, without `count`: the number `index` of a stream.
int64_t Below(const RandomStream& random, int64_t index, int64_t count) {
  const PhiloxBlock bits = random.Block(static_cast<uint64_t>(index));
  const uint64_t wide = (static_cast<uint64_t>(bits[1]) << 32) | bits[0];
  return static_cast<int64_t>(wide % static_cast<uint64_t>(count));
}

void Shuffle(const RandomStream& random, std::vector<int64_t>& items) {
  for (int64_t i = std::ssize(items) - 1; i > 0; --i) {
    std::swap(items[i], items[Below(random, i, i + 1)]);
  }
}

std::vector<int64_t> ShuffleBlocks(const std::vector<int64_t>& samples, int64_t block_size,
                                   const RandomStream& random) {
  const int64_t count = std::ssize(samples);
  std::vector<int64_t> blocks(count / block_size + (count % block_size == 0 ? 0 : 1));
  std::iota(blocks.begin(), blocks.end(), 0);
  Shuffle(random, blocks);
  std::vector<int64_t> order;
  order.reserve(samples.size());
  for (const int64_t block : blocks) {
    const int64_t begin = block * block_size;
    const int64_t end = begin + std::min(block_size, count - begin);
    order.insert(order.end(), samples.begin() + begin, samples.begin() + end);
  }
  return order;
}

// In place: the buffer is the window [i, i + size) of what is left, from which the next one is
// drawn.
void ShuffleThroughBuffer(int64_t size, const RandomStream& random, std::vector<int64_t>& samples) {
  const int64_t count = std::ssize(samples);
  for (int64_t i = 0; i < count; ++i) {
    std::swap(samples[i], samples[i + Below(random, i, std::min(size, count - i))]);
  }
}

// Where part `index` begins.
int64_t PartBegin(int64_t num_samples, const BatchOptions& options, int64_t index) {
  const int64_t each = num_samples / options.num_parts;
  const int64_t rest = num_samples % options.num_parts;
  // The parts that have one more are spread evenly.
  return each * index +
         static_cast<int64_t>(static_cast<__int128>(rest) * index / options.num_parts);
}

}  // namespace

int64_t SamplesInPart(int64_t num_samples, const BatchOptions& options) {
  return PartBegin(num_samples, options, options.part_index + 1) -
         PartBegin(num_samples, options, options.part_index);
}

int64_t BatchesPerEpoch(int64_t num_samples, const BatchOptions& options) {
  const int64_t in_part = SamplesInPart(num_samples, options);
  const int64_t full = in_part / options.batch_size;
  return options.drop_last || in_part % options.batch_size == 0 ? full : full + 1;
}

std::vector<int64_t> SampleOrder(int64_t num_samples, const BatchOptions& options, int64_t epoch) {
  std::vector<int64_t> order(SamplesInPart(num_samples, options));
  std::iota(order.begin(), order.end(), PartBegin(num_samples, options, options.part_index));
  if (!options.shuffle) return order;
  const auto random = [&](Decision decision) {
    return RandomStream({.seed = options.seed, .step = static_cast<uint64_t>(epoch)}, decision);
  };
  if (options.shuffle_block > 0) {
    order = ShuffleBlocks(order, options.shuffle_block, random(kBlockDecision));
  }
  if (options.shuffle_buffer > 0) {
    ShuffleThroughBuffer(options.shuffle_buffer, random(kBufferDecision), order);
  }
  if (options.shuffle_block == 0 && options.shuffle_buffer == 0) {
    Shuffle(random(kAllDecision), order);
  }
  return order;
}

}  // namespace interp
