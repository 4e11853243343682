#include <algorithm>
#include <limits>

#include "kernels/cuda/fold.h"
#include "kernels/cuda/inverse.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sequences.h"

namespace interp::cuda {
namespace {

// The first row from `k` on whose element of column `k` has the largest magnitude; -1 where that is
// 0. All threads of the block get it.
template <typename T>
__device__ int64_t PivotOf(const T* lu, int64_t n, int64_t k) {
  T largest = 0;
  for (int64_t i = k + threadIdx.x; i < n; i += blockDim.x) {
    largest = std::max<T>(largest, fabs(lu[i * n + k]));
  }
  largest = FoldRow(largest, [](T a, T b) { return std::max(a, b); });
  int64_t row = n;
  for (int64_t i = k + threadIdx.x; i < n && row == n; i += blockDim.x) {
    if (fabs(lu[i * n + k]) == largest) row = i;
  }
  row = FoldRow(row, [](int64_t a, int64_t b) { return std::min(a, b); });
  return largest > T{0} ? row : -1;
}

template <typename T>
__device__ void SwapRows(T* matrix, int64_t n, int64_t a, int64_t b) {
  for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
    const T value = matrix[a * n + j];
    matrix[a * n + j] = matrix[b * n + j];
    matrix[b * n + j] = value;
  }
}

// Decomposes `lu` in place and applies its row exchanges to `rows`. False where a column has no
// pivot, which all threads get.
template <typename T>
__device__ bool Decompose(T* lu, int64_t n, T* rows) {
  for (int64_t k = 0; k < n; ++k) {
    const int64_t pivot = PivotOf(lu, n, k);
    if (pivot < 0) return false;
    __syncthreads();
    if (pivot != k) {
      SwapRows(lu, n, k, pivot);
      SwapRows(rows, n, k, pivot);
    }
    __syncthreads();
    for (int64_t i = k + 1 + threadIdx.x; i < n; i += blockDim.x) lu[i * n + k] /= lu[k * n + k];
    __syncthreads();
    const int64_t rest = n - k - 1;
    for (int64_t i = threadIdx.x; i < rest * rest; i += blockDim.x) {
      const int64_t row = k + 1 + i / rest;
      const int64_t column = k + 1 + i % rest;
      lu[row * n + column] -= lu[row * n + k] * lu[k * n + column];
    }
    __syncthreads();
  }
  return true;
}

// Column `j` of x becomes lu^-1 times itself.
template <typename T>
__device__ void SolveColumn(const T* lu, int64_t n, int64_t j, T* x) {
  for (int64_t i = 0; i < n; ++i) {
    T value = x[i * n + j];
    for (int64_t k = 0; k < i; ++k) value -= lu[i * n + k] * x[k * n + j];
    x[i * n + j] = value;
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    T value = x[i * n + j];
    for (int64_t k = i + 1; k < n; ++k) value -= lu[i * n + k] * x[k * n + j];
    x[i * n + j] = value / lu[i * n + i];
  }
}

// A matrix for each block.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    InvertMatrices(int64_t count, int64_t n, const T* matrices, T* scratch, T* out) {
  const int64_t size = n * n;
  for (int64_t m = blockIdx.x; m < count; m += gridDim.x) {
    T* const lu = scratch + m * size;
    T* const x = out + m * size;
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
      lu[i] = matrices[m * size + i];
      x[i] = i / n == i % n ? T{1} : T{0};
    }
    __syncthreads();
    if (Decompose(lu, n, x)) {
      for (int64_t j = threadIdx.x; j < n; j += blockDim.x) SolveColumn(lu, n, j, x);
      continue;
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
      x[i] = std::numeric_limits<T>::quiet_NaN();
    }
  }
}

}  // namespace

absl::Status Invert(DType dtype, int64_t count, int64_t n, const void* x, void* scratch, void* out,
                    cudaStream_t stream) {
  if (count * n == 0) return absl::OkStatus();
  constexpr int64_t kWarp = 32;
  const int64_t threads = std::min<int64_t>((n * n + kWarp - 1) / kWarp * kWarp, kBlockThreads);
  return WithWideFloats("inverse", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return Launch(InvertMatrices<T>, BlocksFor(count, /*work_per_block=*/1),
                  static_cast<unsigned>(threads), /*shared_bytes=*/0, stream, count, n,
                  static_cast<const T*>(x), static_cast<T*>(scratch), static_cast<T*>(out));
  });
}

}  // namespace interp::cuda
