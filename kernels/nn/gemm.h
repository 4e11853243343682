// Small matrix products on packed right-hand sides, single-threaded: the callers split the work.
//
//   C[m, n] = A[m, k] B[k, n]      or   C += A B
//
// B is packed into panels of kPanel columns, each stored row by row and padded with zeros, so that
// the inner loop reads it in one stream; constant weights are packed once. A is read in place, rows
// `lda` apart. The inner kernel keeps a tile of C in registers: kRows x kPanel elements.
//
// oneDNN's products are as fast for large sizes but cost about a microsecond per call and need a
// primitive per shape; these are for products inside other ops, and for float64.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace interp::nn {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
inline constexpr int kGemmRows = 12;  // 12 x 2 accumulators of the 32 registers
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
inline constexpr int kGemmRows = 6;
#else
inline constexpr int kVectorBytes = 16;
inline constexpr int kGemmRows = 6;
#endif

template <typename T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
  // For loads and stores of any alignment; may alias everything.
  typedef T unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
  static constexpr int kLanes = kVectorBytes / sizeof(T);
};

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

// Columns of a panel: two vectors.
template <typename T>
inline constexpr int64_t kPanel = 2 * VectorOf<T>::kLanes;

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

namespace gemm_internal {

// One tile: kRows rows of A times kPanels panels, of which the last has `width` columns.
template <typename T, int kRows, int kPanels>
inline void Tile(int64_t k, const T* a, int64_t lda, const T* panels, int64_t panel_stride, T* c,
                 int64_t ldc, int64_t width, bool accumulate) {
  using V = typename VectorOf<T>::type;
  using U = typename VectorOf<T>::unaligned;
  constexpr int kVectors = 2 * kPanels;
  constexpr int kLanes = VectorOf<T>::kLanes;
  V sum[kRows][kVectors] = {};
  for (int64_t p = 0; p < k; ++p) {
    V row[kVectors];
    for (int j = 0; j < kVectors; ++j) {
      row[j] = *reinterpret_cast<const V*>(panels + j / 2 * panel_stride + p * kPanel<T> +
                                           j % 2 * kLanes);
    }
    for (int i = 0; i < kRows; ++i) {
      const T x = a[i * lda + p];
      for (int j = 0; j < kVectors; ++j) sum[i][j] += x * row[j];
    }
  }
  if (width == kPanel<T>) {
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kVectors; ++j) {
        U* out = reinterpret_cast<U*>(c + i * ldc + j * kLanes);
        *out = accumulate ? *out + sum[i][j] : sum[i][j];
      }
    }
    return;
  }
  const int64_t columns = (kPanels - 1) * kPanel<T> + width;
  for (int i = 0; i < kRows; ++i) {
    alignas(kVectorBytes) T row[kVectors * kLanes];
    for (int j = 0; j < kVectors; ++j) *reinterpret_cast<V*>(row + j * kLanes) = sum[i][j];
    T* out = c + i * ldc;
    for (int64_t j = 0; j < columns; ++j) out[j] = accumulate ? out[j] + row[j] : row[j];
  }
}

// All rows against kPanels panels.
template <typename T, int kPanels>
void Panels(int64_t m, int64_t k, const T* a, int64_t lda, const T* panels, int64_t panel_stride,
            T* c, int64_t ldc, int64_t width, bool accumulate) {
  int64_t i = 0;
  const auto step = [&]<int kRows>() {
    for (; i + kRows <= m; i += kRows) {
      Tile<T, kRows, kPanels>(k, a + i * lda, lda, panels, panel_stride, c + i * ldc, ldc, width,
                              accumulate);
    }
  };
  if constexpr (kPanels == 1) {
    step.template operator()<kGemmRows>();
    step.template operator()<4>();
    step.template operator()<2>();
  }
  step.template operator()<1>();
}

}  // namespace gemm_internal

namespace gemm_internal {

// GemmPacked for a slice of at most kDepth rows of B, of which panels are `panel_stride` apart.
template <typename T>
void Slice(int64_t m, int64_t depth, int64_t n, const T* a, int64_t lda, const T* panel,
           int64_t panel_stride, T* c, int64_t ldc, bool accumulate) {
  int64_t j = 0;
  // With one row a tile of one panel has too few sums to hide the latency of an addition.
  for (; m == 1 && j + 3 * kPanel<T> < n; j += 4 * kPanel<T>, panel += 4 * panel_stride) {
    const int64_t width = std::min(n - j - 3 * kPanel<T>, kPanel<T>);
    Panels<T, 4>(m, depth, a, lda, panel, panel_stride, c + j, ldc, width, accumulate);
  }
  for (; j < n; j += kPanel<T>, panel += panel_stride) {
    const int64_t width = std::min(n - j, kPanel<T>);
    Panels<T, 1>(m, depth, a, lda, panel, panel_stride, c + j, ldc, width, accumulate);
  }
}

}  // namespace gemm_internal

// C = A B, or C += A B with `accumulate`. B was packed from k x n by PackMatrix.
// REQUIRES: `packed` is aligned to kVectorBytes.
template <typename T>
void GemmPacked(int64_t m, int64_t k, int64_t n, const T* a, int64_t lda, const T* packed, T* c,
                int64_t ldc, bool accumulate) {
  constexpr int64_t kDepth = 256;             // a slice of a panel fits into the L1 cache
  constexpr int64_t kBlock = 20 * kGemmRows;  // a slice of A into the L2 cache
  if (k == 0 && !accumulate) {
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, T{0});
  }
  for (int64_t i = 0; i < m; i += kBlock) {
    const int64_t rows = std::min(kBlock, m - i);
    for (int64_t p = 0; p < k; p += kDepth) {
      gemm_internal::Slice(rows, std::min(kDepth, k - p), n, a + i * lda + p, lda,
                           packed + p * kPanel<T>, kPanel<T> * k, c + i * ldc, ldc,
                           accumulate || p > 0);
    }
  }
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
