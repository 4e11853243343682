// Folds over the threads that work on one row: a warp or a block. Included by `.cu` files alone.
#pragma once

#include "kernels/cuda/launch.h"

namespace interp::cuda {

// Rows are worked on by the threads that share threadIdx.y. With blockDim.x of a warp, blocks hold
// several rows and need no barrier; otherwise a block has one row at a time.
//
// Rows up to this length get a warp.
inline constexpr int64_t kWarpRow = 1024;

inline dim3 RowThreads(int64_t length) {
  constexpr unsigned kLanes = 32;
  return length <= kWarpRow ? dim3(kLanes, kBlockThreads / kLanes) : dim3(kBlockThreads, 1);
}
inline unsigned RowBlocks(int64_t rows, int64_t length) {
  return BlocksFor(rows, RowThreads(length).y);
}

// The fold of all values of a row, which all of its threads get. The order is always the same.
// REQUIRES: all threads of the row call it; blockDim.x is a multiple of a warp, at most 32 of them.
template <typename T, typename Fold>
__device__ T FoldRow(T value, Fold fold) {
  for (int distance = warpSize / 2; distance > 0; distance /= 2) {
    value = fold(value, __shfl_xor_sync(~0u, value, distance));
  }
  const int warps = static_cast<int>(blockDim.x) / warpSize;
  if (warps == 1) return value;
  INTERP_SHARED(T, partial, [32]);
  if (threadIdx.x % warpSize == 0) partial[threadIdx.x / warpSize] = value;
  __syncthreads();
  value = partial[0];
  for (int warp = 1; warp < warps; ++warp) value = fold(value, partial[warp]);
  __syncthreads();  // the next fold writes to `partial`
  return value;
}

template <typename T>
__device__ T SumRow(T value) {
  return FoldRow(value, [](T a, T b) { return a + b; });
}
// Keeps NaN.
template <typename T>
__device__ T MaxRow(T value) {
  return FoldRow(value, [](T a, T b) { return b > a || b != b ? b : a; });
}

}  // namespace interp::cuda
