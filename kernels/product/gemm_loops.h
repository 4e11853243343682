// GemmPacked and GemmPackedTransposed, see gemm.h. Compiled for each element type once: the tiles
// of all heights and widths are much code.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/product/gemm.h"

namespace interp::nn {

namespace gemm_internal {

// With `tiles`, of kGemmBlock * kGemmDepth elements, each block of A is copied there for its tiles
// to read in one stream.
template <Order kOrder, typename T>
void GemmInBlocks(int64_t m, int64_t k, int64_t n, const T* a, int64_t lda, const T* packed, T* c,
                  int64_t ldc, bool accumulate, PanelsFrom from, int64_t packed_rows, T* tiles) {
  constexpr int64_t kNear = int64_t{256} << 10;  // bytes that the L2 cache may hold from before
  const int64_t block = PartOf(m, kGemmBlock);
  const T* const end = packed + PackedSize<T>(packed_rows, n);
  const bool large = PackedSize<T>(k, n) * int64_t{sizeof(T)} > kNear;
  // What follows the last panel of a slice.
  const auto after = [&](int64_t i, int64_t p) -> const T* {
    if (p + kGemmDepth < k) return packed + (p + kGemmDepth) * kPanel<T>;
    if (i + block < m) return packed;
    return from == PanelsFrom::kMemoryInARow ? end : nullptr;
  };
  for (int64_t i = 0; i < m; i += block) {
    const int64_t rows = std::min(block, m - i);
    for (int64_t p = 0; p < k; p += kGemmDepth) {
      const Slice<kOrder, T> slice = {std::min(kGemmDepth, k - p),
                                      n,
                                      ElementOfA<kOrder>(a, lda, i, p),
                                      lda,
                                      packed + p * kPanel<T>,
                                      kPanel<T> * packed_rows,
                                      c + i * ldc,
                                      ldc,
                                      accumulate || p > 0,
                                      large || (i == 0 && from != PanelsFrom::kCache),
                                      after(i, p)};
      if (tiles != nullptr) {
        slice.Packed(rows, tiles).ManyRows(rows);
      } else {
        rows <= kTileRows<T> ? slice.FewRows(rows) : slice.ManyRows(rows);
      }
    }
  }
}

// True if copying A by the block costs less than it saves with n columns of B. A transposed A is
// read from many places at once, and so are rows that fall into one set of the L1 cache; other rows
// are read as fast in place.
template <Order kOrder, typename T>
bool CopiesA(int64_t m, int64_t n, int64_t lda) {
  constexpr int64_t kCacheWay = 4096;  // bytes between lines of one set, and of a page
  if (m <= kTileRows<T>) return false;
  const int64_t distance = lda * static_cast<int64_t>(sizeof(T));
  if (kOrder == Order::kColumns) return n >= (distance >= kCacheWay / 2 ? 1 : 4) * kPanel<T>;
  return n >= 16 * kPanel<T> && distance % kCacheWay == 0;
}

// GemmPacked for either order of A.
template <Order kOrder, typename T>
void Gemm(int64_t m, int64_t k, int64_t n, const T* a, int64_t lda, const T* packed, T* c,
          int64_t ldc, bool accumulate, PanelsFrom from, int64_t packed_rows) {
  if (k == 0 && !accumulate) {
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, T{0});
  }
  if (CopiesA<kOrder, T>(m, n, lda)) {
    alignas(64) T tiles[kGemmBlock * kGemmDepth];
    GemmInBlocks<kOrder>(m, k, n, a, lda, packed, c, ldc, accumulate, from, packed_rows, tiles);
  } else {
    GemmInBlocks<kOrder, T>(m, k, n, a, lda, packed, c, ldc, accumulate, from, packed_rows,
                            nullptr);
  }
}

}  // namespace gemm_internal

template <typename T>
void GemmPacked(int64_t m, int64_t k, int64_t n, const T* a, int64_t lda, const T* packed, T* c,
                int64_t ldc, bool accumulate, PanelsFrom from, int64_t packed_rows) {
  gemm_internal::Gemm<gemm_internal::Order::kRows>(m, k, n, a, lda, packed, c, ldc, accumulate,
                                                   from, packed_rows);
}

template <typename T>
void GemmPackedTransposed(int64_t m, int64_t k, int64_t n, const T* a, int64_t lda, const T* packed,
                          T* c, int64_t ldc, bool accumulate) {
  gemm_internal::Gemm<gemm_internal::Order::kColumns>(m, k, n, a, lda, packed, c, ldc, accumulate,
                                                      PanelsFrom::kCache, /*packed_rows=*/k);
}

// Compiles both for T.
#define INTERP_INSTANTIATE_GEMM(T)                                                               \
  template void GemmPacked(int64_t, int64_t, int64_t, const T*, int64_t, const T*, T*, int64_t,  \
                           bool, PanelsFrom, int64_t);                                           \
  template void GemmPackedTransposed(int64_t, int64_t, int64_t, const T*, int64_t, const T*, T*, \
                                     int64_t, bool)

}  // namespace interp::nn
