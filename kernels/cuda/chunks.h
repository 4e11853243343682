// ChunkMap: many arrays cut into chunks, so that one launch works on all of them. Included by `.cu`
// files alone.
#pragma once

#include <cstdint>

#include "kernels/cuda/launch.h"

namespace interp::cuda {

inline constexpr int64_t kChunk = 1024;  // elements that a block works on at a time

template <int kArrays>
struct ChunkMap {
  int64_t sizes[kArrays];
  int64_t first_chunks[kArrays + 1];  // of each array, and the number of all
  int count;

  // REQUIRES: room for it, and a map that was zero at the start.
  void Add(int64_t size) {
    sizes[count] = size;
    first_chunks[count + 1] = first_chunks[count] + (size + kChunk - 1) / kChunk;
    ++count;
  }
  int64_t num_chunks() const { return first_chunks[count]; }

  // The array that a chunk belongs to.
  __device__ int Find(int64_t chunk) const {
    int low = 0;
    int high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first_chunks[middle] <= chunk ? low : high) = middle;
    }
    return low;
  }
};

// Calls visit(array, element) for all elements, over the threads of all blocks.
template <int kArrays, typename Visit>
__device__ void ForEachElement(const ChunkMap<kArrays>& map, const Visit& visit) {
  for (int64_t chunk = blockIdx.x; chunk < map.first_chunks[map.count]; chunk += gridDim.x) {
    const int array = map.Find(chunk);
    const int64_t begin = (chunk - map.first_chunks[array]) * kChunk;
    const int64_t end = begin + kChunk < map.sizes[array] ? begin + kChunk : map.sizes[array];
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) visit(array, i);
  }
}

}  // namespace interp::cuda
