// How the work of a batched product is cut, whatever its element type.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/product/gemm_tile.h"
#include "kernels/product/product.h"
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
  bool begins = false;  // the first of matrix b that the thread gets
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

// Whether threads share the columns of matrices, not the rows. Where rows are few, each thread
// reads all of X and a part of Y.
inline bool SharesColumns(const Product& p, int64_t panel, int threads) {
  constexpr int64_t kEnough = 8;  // parts for each thread, so that none waits long for another
  const int64_t tiles = p.count() * ((p.m + kGemmRows - 1) / kGemmRows);
  if (tiles >= kEnough * threads) return false;
  return p.count() * ((p.n + panel - 1) / panel) > tiles;
}

// Cuts the rows of `whole` into blocks of equal height. A low one at the end would read all of Y
// for a few rows.
template <typename Body>
void CutRows(ProductBlock whole, const Body& body) {
  constexpr int64_t kRowBlock = 16 * kGemmRows;  // keeps a block of the result in the L2 cache
  const int64_t end = whole.i + whole.rows;
  ProductBlock block = whole;
  block.rows = PartOf(whole.rows, kRowBlock);
  for (; block.i < end; block.i += block.rows, block.begins = false) {
    block.rows = std::min(block.rows, end - block.i);
    body(block);
  }
}

// What is dealt out: tiles of rows of all matrices, or panels of columns.
struct Deal {
  bool by_columns = false;
  int64_t length = 0;  // of a matrix, in rows or columns
  int64_t unit = 0;    // rows of a tile or columns of a panel
  int64_t units = 0;   // of a matrix
  int64_t grain = 0;   // units worth a thread of their own
};

inline Deal DealOf(const Product& p, int64_t panel, int threads) {
  Deal deal;
  deal.by_columns = SharesColumns(p, panel, threads);
  deal.length = deal.by_columns ? p.n : p.m;
  deal.unit = deal.by_columns ? panel : kGemmRows;
  deal.units = (deal.length + deal.unit - 1) / deal.unit;
  const int64_t across = deal.by_columns ? p.m : p.n;
  const int64_t work = std::min(deal.unit, deal.length) * across * p.k;
  deal.grain = GrainFor(work, kProductGrain);
  return deal;
}

// Calls body(block) for the blocks of the units [at, end) of all matrices.
template <typename Body>
void ForEachBlockOf(const Product& p, const Deal& deal, int64_t at, int64_t end, const Body& body) {
  while (at < end) {
    const int64_t first = at % deal.units * deal.unit;
    const int64_t count = std::min(end - at, deal.units - at % deal.units);
    ProductBlock whole = {.b = at / deal.units, .rows = p.m, .columns = p.n, .begins = true};
    (deal.by_columns ? whole.j : whole.i) = first;
    (deal.by_columns ? whole.columns : whole.rows) =
        std::min(count * deal.unit, deal.length - first);
    CutRows(whole, body);
    at += count;
  }
}

}  // namespace product_internal

// Calls body(block) for blocks that cover the result, on up to `threads` threads, each of which
// gets as much.
template <typename Body>
void ForEachBlock(const Product& p, int64_t panel, int threads, const Body& body) {
  const product_internal::Deal deal = product_internal::DealOf(p, panel, threads);
  ParallelFor(threads, p.count() * deal.units, deal.grain, [&](int64_t begin, int64_t end) {
    product_internal::ForEachBlockOf(p, deal, begin, end, body);
  });
}

}  // namespace interp::nn
