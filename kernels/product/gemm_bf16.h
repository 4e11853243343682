// Products of bfloat16 matrices with float32 sums, single-threaded: the callers split the work.
//
//   C[m, n] = A[m, k] B[k, n]
//
// Elements are taken two at a time along k, as vdpbf16ps does: such a pair is one 32-bit number. B
// is packed into panels of kPairPanel columns, pairs of rows one after the other, padded with
// zeros; A is read in place, rows `lda` apart. Sums of a tile stay in registers over the whole of
// k, so that nothing is rounded before the end. Processors without the instruction multiply the
// halves one by one, as fast as float32. Which is taken is decided at run time: no level of x86-64
// has the instruction, while most processors of x86-64-v4 do.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/float16.h"
#include "core/machine/processor.h"
#include "kernels/product/gemm_tile.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace interp::nn {

// Columns of a panel: two vectors of pairs.
inline constexpr int64_t kPairPanel = kPanel<float>;

// Pairs of a packed k x n matrix.
inline int64_t PackedPairs(int64_t k, int64_t n) {
  return (n + kPairPanel - 1) / kPairPanel * kPairPanel * ((k + 1) / 2);
}

namespace gemm_bf16 {

using Sums = VectorOf<float>::type;
using Pairs = VectorOf<uint32_t>::type;

// What adds to sums the products of both halves, lane by lane...
struct ByHalves {
  Sums operator()(Sums sums, uint32_t a, Pairs b) const {
    const float low = std::bit_cast<float>(a << 16);
    const float high = std::bit_cast<float>(a & 0xffff0000U);
    return sums + high * (Sums)(b & 0xffff0000U) + low * (Sums)(b << 16);
  }
};
// ... and the instruction that does.
#if defined(__AVX512F__)
struct ByInstruction {
  [[gnu::target("avx512bf16")]] Sums operator()(Sums sums, uint32_t a, Pairs b) const {
    return (Sums)_mm512_dpbf16_ps((__m512)sums, (__m512bh)_mm512_set1_epi32(static_cast<int>(a)),
                                  (__m512bh)b);
  }
};
#endif

// Neighbours a[0] and a[1], wherever they lie.
inline uint32_t PairAt(const bfloat16* a) {
  typedef uint32_t Unaligned __attribute__((aligned(2), may_alias));
  return *reinterpret_cast<const Unaligned*>(a);
}

// kRows rows of A times one panel, to kRows x kPairPanel `sums`. Unrolled early, as are the tiles
// of gemm_tile.h.
template <int kRows, typename MultiplyAdd>
[[gnu::always_inline]] inline void TileBy(const MultiplyAdd& multiply_add, int64_t pairs,
                                          const bfloat16* a, int64_t lda, const uint32_t* panel,
                                          float* sums) {
  Sums sum[kRows][2];
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) sum[i][0] = sum[i][1] = Sums{};
  for (int64_t p = 0; p < pairs; ++p) {
    const Pairs* const row = reinterpret_cast<const Pairs*>(panel + p * kPairPanel);
    Pairs low = row[0];
    Pairs high = row[1];
    if constexpr (kRows > 1) {
      gemm_internal::KeepInRegister(low);
      gemm_internal::KeepInRegister(high);
    }
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      const uint32_t x = PairAt(a + i * lda + 2 * p);
      sum[i][0] = multiply_add(sum[i][0], x, low);
      sum[i][1] = multiply_add(sum[i][1], x, high);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
    reinterpret_cast<Sums*>(sums + i * kPairPanel)[0] = sum[i][0];
    reinterpret_cast<Sums*>(sums + i * kPairPanel)[1] = sum[i][1];
  }
}

// Functions of their own: calls near the loop would take its registers.
template <int kRows>
[[gnu::noinline]] void Tile(int64_t pairs, const bfloat16* a, int64_t lda, const uint32_t* panel,
                            float* sums) {
  TileBy<kRows>(ByHalves(), pairs, a, lda, panel, sums);
}
#if defined(__AVX512F__)
template <int kRows>
[[gnu::noinline, gnu::target("avx512bf16")]] void TileByInstruction(int64_t pairs,
                                                                    const bfloat16* a, int64_t lda,
                                                                    const uint32_t* panel,
                                                                    float* sums) {
  TileBy<kRows>(ByInstruction(), pairs, a, lda, panel, sums);
}
#endif

// One panel of rows of B...
inline void PackRows(int64_t k, int64_t width, const bfloat16* b, int64_t ldb, uint32_t* panel) {
  for (int64_t p = 0; p < k / 2; ++p) {
    const bfloat16* const even = b + 2 * p * ldb;
    const bfloat16* const odd = even + ldb;
    uint32_t* const out = panel + p * kPairPanel;
    for (int64_t j = 0; j < width; ++j) {
      out[j] = even[j].bits | static_cast<uint32_t>(odd[j].bits) << 16;
    }
  }
  if (k % 2 == 0) return;
  for (int64_t j = 0; j < width; ++j) panel[k / 2 * kPairPanel + j] = b[(k - 1) * ldb + j].bits;
}
// ... or of columns, each in one piece.
inline void PackColumns(int64_t k, int64_t width, const bfloat16* b, int64_t ldb, uint32_t* panel) {
  for (int64_t j = 0; j < width; ++j) {
    const bfloat16* const column = b + j * ldb;
    for (int64_t p = 0; p < k / 2; ++p) panel[p * kPairPanel + j] = PairAt(column + 2 * p);
    if (k % 2 != 0) panel[k / 2 * kPairPanel + j] = column[k - 1].bits;
  }
}

}  // namespace gemm_bf16

// Packs B: k x n row by row, or with `transposed` n x k; rows are `ldb` apart.
inline void PackPairs(int64_t k, int64_t n, const bfloat16* b, int64_t ldb, bool transposed,
                      uint32_t* packed) {
  const int64_t pairs = (k + 1) / 2;
  for (int64_t j = 0; j < n; j += kPairPanel, packed += pairs * kPairPanel) {
    const int64_t width = std::min(kPairPanel, n - j);
    if (width < kPairPanel) std::fill_n(packed, pairs * kPairPanel, 0U);
    if (transposed) {
      gemm_bf16::PackColumns(k, width, b + j * ldb, ldb, packed);
    } else {
      gemm_bf16::PackRows(k, width, b + j, ldb, packed);
    }
  }
}

// Whether products are made by vdpbf16ps here. It takes denormal numbers for zero.
inline bool HasPairInstruction() { return kVectorBytes == 64 && ProcessorHasBf16Products(); }

// A B, piece by piece: store(i, j, width, sums) gets elements [j, j + width) of row i and may write
// over `sums`, which has room for kPairPanel. B was packed by PackPairs.
// REQUIRES: rows of A have whole pairs, with a zero after an odd k; `packed` is aligned to
// kVectorBytes; `instruction` only where HasPairInstruction().
template <typename Store>
void GemmPairs(int64_t m, int64_t k, int64_t n, const bfloat16* a, int64_t lda,
               const uint32_t* packed, const Store& store,
               [[maybe_unused]] bool instruction = HasPairInstruction()) {
  if (m == 0) return;
  const int64_t pairs = (k + 1) / 2;
  // Tiles have about equal heights, as low ones are slow.
  const int64_t tiles = (m + kGemmRows - 1) / kGemmRows;
  for (int64_t j = 0; j < n; j += kPairPanel, packed += pairs * kPairPanel) {
    const int64_t width = std::min(kPairPanel, n - j);
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t i = m * tile / tiles;
      const int64_t rows = m * (tile + 1) / tiles - i;
      alignas(kVectorBytes) float sums[kGemmRows * kPairPanel];
      gemm_internal::WithCount<kGemmRows>(rows, [&]<int kRows>() {
#if defined(__AVX512F__)
        if (instruction) {
          gemm_bf16::TileByInstruction<kRows>(pairs, a + i * lda, lda, packed, sums);
          return;
        }
#endif
        gemm_bf16::Tile<kRows>(pairs, a + i * lda, lda, packed, sums);
      });
      for (int64_t row = 0; row < rows; ++row) {
        store(i + row, j, width, sums + row * kPairPanel);
      }
    }
  }
}

}  // namespace interp::nn
