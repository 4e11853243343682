// SquareSums: sums of squares of two arrays, in parts that do not depend on what runs at once, as
// steps of optimizers take norms. Included by `.cu` files alone.
#pragma once

#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"

namespace interp::cuda {

// Their totals follow them.
inline constexpr int kSquareParts = 256;

// In double, as on the host.
struct SquareSums {
  double first;
  double second;
};
inline constexpr size_t kSquareSumsBytes = (kSquareParts + 1) * sizeof(SquareSums);

// Calls add(sums, i) for all of `size` elements. REQUIRES: blocks of kBlockThreads.
template <typename Add>
__device__ void SumSquares(int64_t size, const Add& add, SquareSums* parts) {
  for (int part = blockIdx.x; part < kSquareParts; part += gridDim.x) {
    SquareSums sums = {0, 0};
    for (int64_t i = int64_t{part} * blockDim.x + threadIdx.x; i < size;
         i += int64_t{kSquareParts} * blockDim.x) {
      add(sums, i);
    }
    sums.first = SumRow(sums.first);
    sums.second = SumRow(sums.second);
    if (threadIdx.x == 0) parts[part] = sums;
  }
}

// One block of as many threads as there are parts.
static __global__ void __launch_bounds__(kSquareParts) SumSquareParts(SquareSums* parts) {
  const SquareSums part = parts[threadIdx.x];
  const double first = SumRow(part.first);
  const double second = SumRow(part.second);
  if (threadIdx.x == 0) parts[kSquareParts] = {first, second};
}

// Behind the launch of `kernel(args..., parts)`, which calls SumSquares: the totals.
template <typename... Params, typename... Args>
absl::Status LaunchSquareSums(void (*kernel)(Params...), SquareSums* parts, cudaStream_t stream,
                              const Args&... args) {
  INTERP_RETURN_IF_ERROR(Launch(kernel, BlocksFor(kSquareParts, 1), kBlockThreads,
                                /*shared_bytes=*/0, stream, args..., parts));
  return Launch(SumSquareParts, 1, kSquareParts, /*shared_bytes=*/0, stream, parts);
}

}  // namespace interp::cuda
