// Small matrix products on packed right-hand sides, single-threaded: the callers split the work.
//
//   C[m, n] = A[m, k] B[k, n]      or   C += A B
//
// B is packed into panels of kPanel columns, each stored row by row and padded with zeros, so that
// the inner loop reads it in one stream; constant weights are packed once. A is read in place, rows
// `lda` apart. The inner kernel (gemm_tile.h) keeps a tile of C in registers.
//
// oneDNN's products are as fast for large sizes but cost about a microsecond per call and need a
// primitive per shape; these are for products inside other ops, and for float64.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "kernels/nn/gemm_tile.h"

namespace interp::nn {

// Uninitialised memory for elements, aligned to a cache line.
template <typename T>
class AlignedArray {
 public:
  AlignedArray() = default;
  // May throw std::bad_alloc.
  explicit AlignedArray(int64_t size) : size_(size) {
    const size_t bytes = (static_cast<size_t>(size) * sizeof(T) + 63) / 64 * 64;
    data_.reset(static_cast<T*>(std::aligned_alloc(64, std::max<size_t>(bytes, 64))));
    if (data_ == nullptr) throw std::bad_alloc();
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t size() const { return size_; }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T[], Free> data_;
  int64_t size_ = 0;
};

// Elements of a packed k x n matrix.
template <typename T>
int64_t PackedSize(int64_t k, int64_t n) {
  return (n + kPanel<T> - 1) / kPanel<T> * kPanel<T> * k;
}

// Packs B, whose element (i, j) is b[i * row_stride + j * col_stride], to `packed`.
template <typename T>
void PackMatrix(int64_t k, int64_t n, const T* b, int64_t row_stride, int64_t col_stride,
                T* packed) {
  for (int64_t j0 = 0; j0 < n; j0 += kPanel<T>) {
    const int64_t width = std::min(kPanel<T>, n - j0);
    for (int64_t i = 0; i < k; ++i, packed += kPanel<T>) {
      const T* row = b + i * row_stride + j0 * col_stride;
      for (int64_t j = 0; j < width; ++j) packed[j] = row[j * col_stride];
      for (int64_t j = width; j < kPanel<T>; ++j) packed[j] = T{0};
    }
  }
}

// GemmPacked for either order of A.
template <gemm_internal::Order kOrder, typename T>
void GemmInOrder(int64_t m, int64_t k, int64_t n, const T* a, int64_t lda, const T* packed, T* c,
                 int64_t ldc, bool accumulate) {
  using gemm_internal::ElementOfA;
  constexpr int64_t kDepth = 256;             // a slice of a panel fits into the L1 cache
  constexpr int64_t kBlock = 20 * kGemmRows;  // a slice of A into the L2 cache
  if (k == 0 && !accumulate) {
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, T{0});
  }
  for (int64_t i = 0; i < m; i += kBlock) {
    const int64_t rows = std::min(kBlock, m - i);
    for (int64_t p = 0; p < k; p += kDepth) {
      const gemm_internal::Slice<kOrder, T> slice = {std::min(kDepth, k - p),
                                                     n,
                                                     ElementOfA<kOrder>(a, lda, i, p),
                                                     lda,
                                                     packed + p * kPanel<T>,
                                                     kPanel<T> * k,
                                                     c + i * ldc,
                                                     ldc,
                                                     accumulate || p > 0};
      rows <= kGemmRows ? slice.FewRows(rows) : slice.ManyRows(rows);
    }
  }
}

// C = A B, or C += A B with `accumulate`. B was packed from k x n by PackMatrix.
// REQUIRES: `packed` is aligned to kVectorBytes.
template <typename T>
void GemmPacked(int64_t m, int64_t k, int64_t n, const T* a, int64_t lda, const T* packed, T* c,
                int64_t ldc, bool accumulate) {
  GemmInOrder<gemm_internal::Order::kRows>(m, k, n, a, lda, packed, c, ldc, accumulate);
}

// The same for a transposed A, stored as k x m: C = A^T B.
template <typename T>
void GemmPackedTransposed(int64_t m, int64_t k, int64_t n, const T* a, int64_t lda, const T* packed,
                          T* c, int64_t ldc, bool accumulate) {
  GemmInOrder<gemm_internal::Order::kColumns>(m, k, n, a, lda, packed, c, ldc, accumulate);
}

// Sum of a[i] * b[i].
template <typename T>
T Dot(const T* a, const T* b, int64_t n) {
  using U = typename VectorOf<T>::unaligned;
  constexpr int kLanes = VectorOf<T>::kLanes;
  constexpr int kSums = 4;  // hides the latency of an addition
  typename VectorOf<T>::type sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums * kLanes <= n; i += kSums * kLanes) {
    for (int s = 0; s < kSums; ++s) {
      sums[s] += *reinterpret_cast<const U*>(a + i + s * kLanes) *
                 *reinterpret_cast<const U*>(b + i + s * kLanes);
    }
  }
  for (; i + kLanes <= n; i += kLanes) {
    sums[0] += *reinterpret_cast<const U*>(a + i) * *reinterpret_cast<const U*>(b + i);
  }
  sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  T total = 0;
  for (; i < n; ++i) total += a[i] * b[i];
  for (int lane = 0; lane < kLanes; ++lane) total += sums[0][lane];
  return total;
}

// C = A B for few rows of A, where packing B would cost more than it saves. With `transposed`, B is
// stored as n x k.
template <typename T>
void GemmUnpacked(int64_t m, int64_t k, int64_t n, const T* a, int64_t lda, const T* b, int64_t ldb,
                  bool transposed, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i, a += lda, c += ldc) {
    if (transposed) {
      for (int64_t j = 0; j < n; ++j) c[j] = Dot(a, b + j * ldb, k);
      continue;
    }
    std::fill_n(c, n, T{0});
    for (int64_t p = 0; p < k; ++p) {
      const T x = a[p];
      const T* row = b + p * ldb;
      for (int64_t j = 0; j < n; ++j) c[j] += x * row[j];
    }
  }
}

}  // namespace interp::nn
