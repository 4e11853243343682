// ArrayBatch: arrays that one launch reads and writes. Included by `.cu` files alone.
#pragma once

#include "absl/types/span.h"
#include "kernels/cuda/array_update.h"
#include "kernels/cuda/chunks.h"

namespace interp::cuda {

inline constexpr int kMostArrays = 96;

struct ArrayBatch {
  ChunkMap<kMostArrays> chunks;
  const void* in[kMostArrays];
  void* out[kMostArrays];
  int first;  // number of the first array
};

// Calls launch(batch, blocks) for as many arrays at a time as a launch takes. Sizes are divided by
// `unit`.
template <typename Body>
absl::Status ForEachBatch(absl::Span<const ArrayUpdate> arrays, int64_t unit, const Body& launch) {
  for (size_t begin = 0; begin < arrays.size(); begin += kMostArrays) {
    ArrayBatch batch = {};
    batch.first = static_cast<int>(begin);
    for (const ArrayUpdate& array : arrays.subspan(begin, kMostArrays)) {
      batch.in[batch.chunks.count] = array.in;
      batch.out[batch.chunks.count] = array.out;
      batch.chunks.Add(array.size / unit);
    }
    const int64_t chunks = batch.chunks.num_chunks();
    if (chunks > 0) INTERP_RETURN_IF_ERROR(launch(batch, BlocksFor(chunks, 1)));
  }
  return absl::OkStatus();
}

}  // namespace interp::cuda
