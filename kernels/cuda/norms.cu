#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/norms.h"

namespace interp::cuda {
namespace {

// Sums are taken in that many parts, whatever runs at once.
constexpr int kParts = 256;
// After the parts.
constexpr int kTotal = kParts;

__global__ void __launch_bounds__(kBlockThreads)
    SumSquaresOfParts(const float* x, int64_t size, float* parts) {
  for (int part = blockIdx.x; part < kParts; part += gridDim.x) {
    float total = 0;
    for (int64_t i = int64_t{part} * blockDim.x + threadIdx.x; i < size;
         i += int64_t{kParts} * blockDim.x) {
      total += x[i] * x[i];
    }
    total = SumRow(total);
    if (threadIdx.x == 0) parts[part] = total;
  }
}

// One block of as many threads as there are parts.
__global__ void __launch_bounds__(kParts) SumParts(const float* parts, float* total) {
  const float sum = SumRow(parts[threadIdx.x]);
  if (threadIdx.x == 0) *total = sum;
}

__global__ void __launch_bounds__(kBlockThreads)
    ScaleToNorm(const float* x, int64_t size, float max_norm, const float* squares, float* out) {
  const float norm = sqrtf(*squares);
  const float factor = norm > max_norm ? max_norm / norm : 1.0f;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += int64_t{gridDim.x} * blockDim.x) {
    out[i] = x[i] * factor;
  }
}

}  // namespace

size_t NormWorkspaceBytes() { return (kTotal + 1) * sizeof(float); }

absl::Status SumOfSquares(const float* x, int64_t size, void* workspace, float* out,
                          cudaStream_t stream) {
  float* const parts = static_cast<float*>(workspace);
  INTERP_RETURN_IF_ERROR(Launch(SumSquaresOfParts, BlocksFor(kParts, 1), kBlockThreads,
                                /*shared_bytes=*/0, stream, x, size, parts));
  return Launch(SumParts, 1, kParts, /*shared_bytes=*/0, stream, parts, out);
}

absl::Status ClipByNorm(const float* x, int64_t size, float max_norm, void* workspace, float* out,
                        cudaStream_t stream) {
  if (size == 0) return absl::OkStatus();
  float* const squares = static_cast<float*>(workspace) + kTotal;
  INTERP_RETURN_IF_ERROR(SumOfSquares(x, size, workspace, squares, stream));
  return LaunchElements(ScaleToNorm, size, stream, x, size, max_norm, squares, out);
}

}  // namespace interp::cuda
