// Reductions of contiguous rows, see reduce.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/util/reduce_plan.h"

namespace interp::reduce {

inline constexpr int64_t kLanes = 32;        // folded side by side in a row
inline constexpr int64_t kBlock = 8 * 1024;  // elements of a row folded before they are added up
inline constexpr int64_t kMaxBlocks = 256;   // of a reduction to one element

// Folds x[0, n): lanes side by side, which the compiler keeps in vector registers. Out of line, so
// that there is one of it.
template <typename Source, typename Reducer>
[[gnu::noinline]] typename Reducer::Acc FoldBlock(Source x, int64_t n, int64_t at,
                                                  const Reducer& reducer) {
  using Acc = typename Reducer::Acc;
  Acc total = reducer.Init();
  int64_t i = 0;
  if (n >= kLanes) {
    Acc lanes[kLanes];
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = reducer.Map(x[l], at);
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      for (int64_t l = 0; l < kLanes; ++l) {
        lanes[l] = reducer.Fold(lanes[l], reducer.Map(x[i + l], at));
      }
    }
    for (int64_t width = kLanes / 2; width > 0; width /= 2) {
      for (int64_t l = 0; l < width; ++l) lanes[l] = reducer.Fold(lanes[l], lanes[l + width]);
    }
    total = lanes[0];
  }
  for (; i < n; ++i) total = reducer.Fold(total, reducer.Map(x[i], at));
  return total;
}

// Folds a contiguous row of any length.
template <typename Source, typename Reducer>
typename Reducer::Acc FoldRow(Source x, int64_t n, int64_t at, const Reducer& reducer) {
  typename Reducer::Acc total = FoldBlock(x, std::min(n, kBlock), at, reducer);
  for (int64_t i = kBlock; i < n; i += kBlock) {
    total = reducer.Fold(total, FoldBlock(x + i, std::min(n - i, kBlock), at, reducer));
  }
  return total;
}

// One output from one row, blocks in parallel.
template <typename Source, typename Reducer>
typename Reducer::Acc FoldLongRow(int num_threads, Source x, int64_t n, const Reducer& reducer) {
  typename Reducer::Acc parts[kMaxBlocks];
  const int64_t length = std::max(kBlock, (n + kMaxBlocks - 1) / kMaxBlocks);
  const int64_t blocks = (n + length - 1) / length;
  const int64_t grain = GrainFor(length);
  ParallelFor(num_threads, blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      parts[b] = FoldRow(x + b * length, std::min(length, n - b * length), 0, reducer);
    }
  });
  typename Reducer::Acc total = reducer.Init();
  for (int64_t b = 0; b < blocks; ++b) total = reducer.Fold(total, parts[b]);
  return total;
}

template <typename Source, typename R, typename Reducer, typename Finish>
void ReduceRows(const ReducePlan& plan, int num_threads, Source x, R* out, const Reducer& reducer,
                const Finish& finish) {
  const int64_t outputs = plan.kept.count();
  const int64_t rows = plan.reduced.count();
  const int64_t length = plan.inner.size;
  if (outputs == 1 && rows == 1) {
    out[0] = finish(FoldLongRow(num_threads, x, length, reducer), 0);
    return;
  }
  ParallelFor(num_threads, outputs, GrainFor(rows * length), [&](int64_t begin, int64_t end) {
    LoopCursor at(plan.kept, begin);
    for (int64_t o = begin; o < end; ++o, at.Next()) {
      typename Reducer::Acc total = reducer.Init();
      LoopCursor row(plan.reduced);
      for (int64_t r = 0; r < rows; ++r, row.Next()) {
        total = reducer.Fold(total, FoldRow(x + at.x() + row.x(), length, at.y(), reducer));
      }
      out[at.y()] = finish(total, at.y());
    }
  });
}

}  // namespace interp::reduce
