// How the work of a batched product is cut, whatever its element type.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/nn/gemm_tile.h"
#include "kernels/nn/product.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {

// Multiplications worth a thread of their own.
inline constexpr int64_t kProductGrain = 64 * 1024;

// Rows [i, i + rows) and columns [j, j + columns) of matrix b of the result; j is a multiple of the
// width of a panel.
struct ProductBlock {
  int64_t b = 0;
  int64_t i = 0;
  int64_t rows = 0;
  int64_t j = 0;
  int64_t columns = 0;
};

// The matrix of X or Y that matrix b of the result is made from.
inline int64_t MatrixOf(const Product& p, int64_t b, const std::array<int64_t, kMaxRank>& steps) {
  int64_t at = 0;
  for (int d = p.batch.rank() - 1; d >= 0; --d) {
    at += b % p.batch[d] * steps[d];
    b /= p.batch[d];
  }
  return at;
}

namespace product_internal {

// Whole matrices, row blocks and column blocks of them.
struct Cut {
  int64_t rows = 1;     // rows of a block
  int64_t columns = 1;  // columns of a block, a multiple of the panel width
  int64_t row_blocks = 1;
  int64_t column_blocks = 1;
};

inline Cut CutProduct(const Product& p, int64_t panel, int threads) {
  constexpr int64_t kRowBlock = 16 * kGemmRows;  // keeps a block of the result in the L2 cache
  // Of equal height: a low one at the end would read all of Y for a few rows.
  Cut cut = {PartOf(p.m, kRowBlock), p.n};
  const auto blocks = [&] {
    cut.row_blocks = (p.m + cut.rows - 1) / cut.rows;
    cut.column_blocks = (p.n + cut.columns - 1) / cut.columns;
    return p.count() * cut.row_blocks * cut.column_blocks;
  };
  if (blocks() >= threads) return cut;
  if (p.m >= 2 * kGemmRows * threads) {
    const int64_t share = (p.m + threads - 1) / threads;
    cut.rows = (share + kGemmRows - 1) / kGemmRows * kGemmRows;
  } else {
    const int64_t share = (p.n + threads - 1) / threads;
    cut.columns = (share + panel - 1) / panel * panel;
  }
  blocks();
  return cut;
}

}  // namespace product_internal

// Calls body(block) for blocks that cover the result, on up to `threads` threads.
template <typename Body>
void ForEachBlock(const Product& p, int64_t panel, int threads, const Body& body) {
  const product_internal::Cut cut = product_internal::CutProduct(p, panel, threads);
  const int64_t per_matrix = cut.row_blocks * cut.column_blocks;
  const int64_t work = std::min(p.m, cut.rows) * std::min(p.n, cut.columns) * p.k;
  const int64_t grain = kProductGrain / std::max<int64_t>(1, work) + 1;
  ParallelFor(threads, p.count() * per_matrix, grain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t i = at % per_matrix / cut.column_blocks * cut.rows;
      const int64_t j = at % cut.column_blocks * cut.columns;
      body(ProductBlock{at / per_matrix, i, std::min(cut.rows, p.m - i), j,
                        std::min(cut.columns, p.n - j)});
    }
  });
}

}  // namespace interp::nn
