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
#include <cstring>
#include <memory>
#include <new>

#include "core/storage/aligned_memory.h"
#include "kernels/product/gemm_tile.h"
#include "kernels/util/transpose_plane.h"

namespace interp::nn {

// Uninitialised memory for elements, aligned to a cache line.
template <typename T>
class AlignedArray {
 public:
  AlignedArray() = default;
  // May throw std::bad_alloc.
  explicit AlignedArray(int64_t size) : size_(size) {
    data_.reset(static_cast<T*>(AllocateAligned(static_cast<size_t>(size) * sizeof(T))));
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

// Rows of B that are multiplied at once: their slice of a panel fits into the L1 cache.
inline constexpr int64_t kGemmDepth = 256;

// Elements of a packed k x n matrix.
template <typename T>
int64_t PackedSize(int64_t k, int64_t n) {
  return (n + kPanel<T> - 1) / kPanel<T> * kPanel<T> * k;
}

namespace gemm_internal {

// The rows of one panel are `width` elements, the rest of it zeros.
template <typename T>
void PadPanel(int64_t k, int64_t width, T* panel) {
  for (int64_t i = 0; i < k; ++i) {
    std::fill_n(panel + i * kPanel<T> + width, kPanel<T> - width, T{0});
  }
}

}  // namespace gemm_internal

// Packs B, whose element (i, j) is b[i * row_stride + j * col_stride], to `packed`. B may be at any
// address: it is moved as bytes. REQUIRES: one of the strides is 1.
template <typename T>
void PackMatrix(int64_t k, int64_t n, const T* b, int64_t row_stride, int64_t col_stride,
                T* packed) {
  constexpr int64_t kWidth = kPanel<T>;
  const int64_t whole = n / kWidth * kWidth;
  if (row_stride == 1) {
    for (int64_t j = 0; j < n; j += kWidth) {
      TransposeMatrix(b + j * col_stride, col_stride, packed + j * k, kWidth,
                      std::min(kWidth, n - j), k);
    }
  } else {
    // A row at a time over all panels: it lies in one piece, the next may lie in another page.
    for (int64_t i = 0; i < k; ++i) {
      const T* const row = b + i * row_stride;
      T* const to = packed + i * kWidth;
      for (int64_t j = 0; j < whole; j += kWidth) {
        std::memcpy(to + j * k, row + j, kWidth * sizeof(T));
      }
      if (whole == n) continue;
      std::memcpy(to + whole * k, row + whole, static_cast<size_t>(n - whole) * sizeof(T));
    }
  }
  if (whole < n) gemm_internal::PadPanel(k, n - whole, packed + whole * k);
}

// Rows of A that go together at most: their slice of A stays in the L2 cache.
inline constexpr int64_t kGemmBlock = 11 * kGemmRows;

// The size of the parts when `count` is cut into as few as possible of at most `most`, all but the
// last of them equal.
inline int64_t PartOf(int64_t count, int64_t most) {
  const int64_t parts = std::max<int64_t>((count + most - 1) / most, 1);
  return (count + parts - 1) / parts;
}

// Where a packed B is when a product begins; panels that come from memory are fetched ahead.
enum class PanelsFrom : int8_t {
  kCache,         // the L2 cache, unless it is too large for that
  kMemory,        // as the weights of an op, that others ran since
  kMemoryInARow,  // and another B, which lies behind it, comes next
};

// C = A B, or C += A B with `accumulate`. B was packed from k x n by PackMatrix, or is k rows of
// what was packed from `packed_rows` x n, from row r on if `packed` is r * kPanel<T> behind the
// start. T is float, double, uint32_t or uint64_t. REQUIRES: `packed` is aligned to kVectorBytes.
template <typename T>
void GemmPacked(int64_t m, int64_t k, int64_t n, const T* a, int64_t lda, const T* packed, T* c,
                int64_t ldc, bool accumulate, PanelsFrom from, int64_t packed_rows);
template <typename T>
void GemmPacked(int64_t m, int64_t k, int64_t n, const T* a, int64_t lda, const T* packed, T* c,
                int64_t ldc, bool accumulate, PanelsFrom from = PanelsFrom::kCache) {
  GemmPacked(m, k, n, a, lda, packed, c, ldc, accumulate, from, /*packed_rows=*/k);
}

// The same for a transposed A, stored as k x m: C = A^T B.
template <typename T>
void GemmPackedTransposed(int64_t m, int64_t k, int64_t n, const T* a, int64_t lda, const T* packed,
                          T* c, int64_t ldc, bool accumulate);

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
  return total + FoldLanes<T>(sums[0], [](auto x, auto y) { return x + y; });
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
