#include "kernels/cuda/launch.h"
#include "tests/cuda/row_kernels.h"

namespace interp::cuda_test {
namespace {

using cuda::Launch;

__device__ float SumOfWarp(Change change, float value) {
  if (change == Change::kDivergentShuffle && threadIdx.x % 2 == 0) return value;
  const unsigned mask = change == Change::kHalfMask ? 0xffffu : ~0u;
  for (int distance = warpSize / 2; distance > 0; distance /= 2) {
    value += __shfl_down_sync(mask, value, distance);
  }
  return value;
}

// The neighbour's value, by way of shared memory that only the warp uses.
__device__ float OfNeighbour(Change change, float value) {
  INTERP_SHARED(float, lanes, [kColumns]);
  const int lane = threadIdx.x % warpSize;
  lanes[threadIdx.x] = value;
  if (change != Change::kNoWarpBarrier) __syncwarp();
  const float result = lanes[threadIdx.x - lane + (lane + 1) % warpSize];
  __syncwarp();
  return result;
}

__global__ void Reverse(Change change, const float* input, float* output, float* sum) {
  INTERP_SHARED(float, row, [kColumns]);
  INTERP_DYNAMIC_SHARED(float, copy);
  const int i = threadIdx.x;
  const float* const in = input + blockIdx.x * kColumns;
  if (change == Change::kEarlyReturn && i >= kColumns - 8) return;
  if (change != Change::kNothingWritten || i != 0)
    row[i] = in[change == Change::kOneMore ? i + 1 : i];
  if (change == Change::kMisalignedVector && i == 0) {
    *reinterpret_cast<float4*>(copy) = *reinterpret_cast<const float4*>(in + 1);
  }
  if (change == Change::kBarrierInBranch) {
    if (i % 2 == 0) __syncthreads();
  } else if (change != Change::kNoBarrier) {
    __syncthreads();
  }
  copy[i] = row[kColumns - 1 - i];
  const float value = OfNeighbour(change, SumOfWarp(change, copy[i]));
  const int to =
      change == Change::kSwappedIndex ? i * gridDim.x + blockIdx.x % 2 : blockIdx.x * kColumns + i;
  output[to] = copy[i];
  if (i % warpSize != warpSize - 1) return;
  if (change == Change::kPlainSum) *sum += value;
  if (change != Change::kPlainSum) atomicAdd(sum, value);
}

__global__ void FillAll(float* data, float value) {
  data[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void Increase(const float* from, float* to) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i] + 1.0f;
}

}  // namespace

absl::Status ReverseRows(Change change, const float* input, float* output, float* sum, int rows,
                         cudaStream_t stream) {
  const size_t bytes = (kColumns - (change == Change::kOneTooSmall ? 1 : 0)) * sizeof(float);
  return Launch(Reverse, rows, kColumns, bytes, stream, change, input, output, sum);
}

absl::Status Fill(float* data, float value, int count, cudaStream_t stream) {
  return Launch(FillAll, 1, count, 0, stream, data, value);
}

absl::Status AddOne(const float* from, float* to, int count, cudaStream_t stream) {
  return Launch(Increase, 1, count, 0, stream, from, to);
}

}  // namespace interp::cuda_test
