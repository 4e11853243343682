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
    SumSquaresOfParts(const float* x, int64_t size, double* parts) {
  for (int part = blockIdx.x; part < kParts; part += gridDim.x) {
    double total = 0;
    for (int64_t i = int64_t{part} * blockDim.x + threadIdx.x; i < size;
         i += int64_t{kParts} * blockDim.x) {
      total += double{x[i]} * x[i];
    }
    total = SumRow(total);
    if (threadIdx.x == 0) parts[part] = total;
  }
}

// One block of as many threads as there are parts.
template <typename T>
__global__ void __launch_bounds__(kParts) SumParts(const double* parts, T* total) {
  const double sum = SumRow(parts[threadIdx.x]);
  if (threadIdx.x == 0) *total = static_cast<T>(sum);
}

template <typename T>
absl::Status SquaresTo(const float* x, int64_t size, void* workspace, T* total,
                       cudaStream_t stream) {
  auto* const parts = static_cast<double*>(workspace);
  INTERP_RETURN_IF_ERROR(Launch(SumSquaresOfParts, BlocksFor(kParts, 1), kBlockThreads,
                                /*shared_bytes=*/0, stream, x, size, parts));
  return Launch(SumParts<T>, 1, kParts, /*shared_bytes=*/0, stream, parts, total);
}

__global__ void __launch_bounds__(kBlockThreads)
    ScaleToNorm(const float* x, int64_t size, float max_norm, const double* squares, float* out) {
  const double norm = sqrt(*squares);
  const auto factor = static_cast<float>(norm > max_norm ? max_norm / norm : 1.0);
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += int64_t{gridDim.x} * blockDim.x) {
    out[i] = x[i] * factor;
  }
}

}  // namespace

size_t NormWorkspaceBytes() { return (kTotal + 1) * sizeof(double); }

absl::Status SumOfSquares(const float* x, int64_t size, void* workspace, float* out,
                          cudaStream_t stream) {
  return SquaresTo(x, size, workspace, out, stream);
}

absl::Status ClipByNorm(const float* x, int64_t size, float max_norm, void* workspace, float* out,
                        cudaStream_t stream) {
  if (size == 0) return absl::OkStatus();
  double* const squares = static_cast<double*>(workspace) + kTotal;
  INTERP_RETURN_IF_ERROR(SquaresTo(x, size, workspace, squares, stream));
  return LaunchElements(ScaleToNorm, size, stream, x, size, max_norm, squares, out);
}

}  // namespace interp::cuda
