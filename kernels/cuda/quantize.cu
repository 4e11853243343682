#include <algorithm>
#include <bit>

#include "kernels/cuda/convert.h"
#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/quantize.h"

namespace interp::cuda {
namespace {

// Bits of magnitudes are ordered as they are, and NaN is the largest.
__global__ void __launch_bounds__(kBlockThreads)
    FindMagnitude(const float* x, int64_t size, uint32_t* bits) {
  uint32_t largest = 0;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += int64_t{gridDim.x} * blockDim.x) {
    largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  }
  largest = FoldRow(largest, [](uint32_t a, uint32_t b) { return std::max(a, b); });
  if (threadIdx.x == 0) atomicMax(bits, largest);
}

// Half away from zero: the largest float below 0.5 is added, and the fraction cut off.
__device__ float RoundHalfAway(float x) { return truncf(x + copysignf(0x1.fffffep-2f, x)); }

__device__ float OnGrid(const Quantization& q, float scale, float x) {
  const float inverse = scale <= 1e-30f ? 1.0f / (scale + 1e-6f) : 1.0f / scale;
  if (q.round_half_even) {
    float value = rintf(q.bins * inverse * x);
    value = value > q.bins ? q.bins : value;
    return value < -q.bins - 1 ? -q.bins - 1 : value;
  }
  const float low = x < -scale ? -scale : x;
  const float clipped = low > scale ? scale : low;
  return RoundHalfAway(q.bins * inverse * clipped);
}

__global__ void __launch_bounds__(kBlockThreads) PutOnGrid(const Quantization q) {
  const float scale = std::bit_cast<float>(*q.bits);
  if (blockIdx.x == 0 && threadIdx.x == 0) *q.scale = scale;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < q.size;
       i += int64_t{gridDim.x} * blockDim.x) {
    q.out[i] = OnGrid(q, scale, q.x[i]);
  }
}

__global__ void __launch_bounds__(kBlockThreads)
    TakeOffGrid(const float* x, const float* scale, float range, float* out, int64_t size) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += int64_t{gridDim.x} * blockDim.x) {
    out[i] = x[i] * *scale / range;
  }
}

}  // namespace

absl::Status QuantizeByMaximum(const Quantization& quantization, cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(
      Fill(sizeof(uint32_t), /*bits=*/0, quantization.bits, /*count=*/1, stream));
  INTERP_RETURN_IF_ERROR(LaunchElements(FindMagnitude, quantization.size, stream, quantization.x,
                                        quantization.size, quantization.bits));
  // The scale is there without elements, too.
  return LaunchElements(PutOnGrid, std::max<int64_t>(quantization.size, 1), stream, quantization);
}

absl::Status Dequantize(const float* x, const float* scale, float range, float* out, int64_t size,
                        cudaStream_t stream) {
  return LaunchElements(TakeOffGrid, size, stream, x, scale, range, out, size);
}

}  // namespace interp::cuda
