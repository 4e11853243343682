// Reductions over any set of dimensions, in any layout.
//
// `PlanReduce` sorts the dimensions of the input, in memory order and merged where possible, into
// kept and reduced loops. What the fastest one in memory is decides how the data is walked:
//
//   reduced  rows: each output folds contiguous rows, several elements at a time;
//   kept     columns: a tile of neighbouring outputs is folded together, one row after the other.
//
// A reducer says what is folded:
//
//   struct SumOfSquares {
//     using Acc = double;                                    // what is folded
//     Acc Init() const { return 0; }
//     Acc Map(float x, int64_t) const { return Acc{x} * x; } // second: position of the output
//     Acc Fold(Acc a, Acc b) const { return a + b; }
//   };
//
// `x` is a pointer, or a struct like one (x[i], x + n), which may read several tensors. Elements
// are folded in an order that depends on the shape alone, so results do not depend on the number of
// threads. Floating sums fold in double, in blocks: large sums stay accurate.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>

#include "core/status.h"
#include "core/tensor.h"
#include "kernels/util/loops.h"
#include "kernels/util/parallel_for.h"

namespace interp {

// Bit d: logical dimension d is reduced.
using DimSet = std::bitset<kMaxRank>;

// The set of the listed axes, negative ones counted from the end; all dimensions for an empty list.
// A scalar takes the axes 0 and -1.
absl::StatusOr<DimSet> ReducedDims(absl::Span<const int64_t> axes, int rank);

// Shape after the reduction: reduced dimensions become 1 or vanish.
Shape ReducedShape(const Shape& x, const DimSet& reduced, bool keep_dim);

struct ReducePlan {
  LoopNest kept;     // x moves in the input, y in the output
  LoopNest reduced;  // x moves in the input
  Loop inner;        // the loop that is fastest in memory; not in the nests
  bool rows = true;  // `inner` is a reduced loop
};

// The loops for out = reduction of x. Works for either keep_dim.
ReducePlan PlanReduce(const Tensor& x, const DimSet& reduced, const Tensor& out);

// The same for an output with these strides along the dimensions of x.
ReducePlan PlanReduce(const Tensor& x, const DimSet& reduced, const DimStrides& out);

// Strides of a reduction's output along the dimensions of its input; 0 where they are reduced.
DimStrides KeptStrides(const Tensor& out, const DimSet& reduced, int rank);

namespace reduce {

inline constexpr int64_t kLanes = 32;        // folded side by side in a row
inline constexpr int64_t kBlock = 8 * 1024;  // elements of a row folded before they are added up
inline constexpr int64_t kMaxBlocks = 256;   // of a reduction to one element
inline constexpr int64_t kTile = 128;        // outputs folded together in columns

// Folds x[0, n): lanes side by side, which the compiler keeps in vector registers.
template <typename Source, typename Reducer>
typename Reducer::Acc FoldBlock(Source x, int64_t n, int64_t at, const Reducer& reducer) {
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
  const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / length);
  ParallelFor(num_threads, blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      parts[b] = FoldRow(x + b * length, std::min(length, n - b * length), 0, reducer);
    }
  });
  typename Reducer::Acc total = reducer.Init();
  for (int64_t b = 0; b < blocks; ++b) total = reducer.Fold(total, parts[b]);
  return total;
}

// Elements one task of outputs should reduce so that threads pay.
inline int64_t OutputGrain(int64_t elements_per_output) {
  return std::max<int64_t>(1, kElementwiseGrain / std::max<int64_t>(elements_per_output, 1));
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
  ParallelFor(num_threads, outputs, OutputGrain(rows * length), [&](int64_t begin, int64_t end) {
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

// Folds rows of `n` neighbouring outputs that start at `x` and go to `at`, `at` + step, ...
template <typename Source, typename R, typename Reducer, typename Finish>
void ReduceTile(const LoopNest& reduced, Source x, int64_t n, R* out, int64_t at, int64_t step,
                const Reducer& reducer, const Finish& finish) {
  typename Reducer::Acc totals[kTile];
  std::fill(totals, totals + n, reducer.Init());
  LoopCursor row(reduced);
  const int64_t rows = reduced.count();
  for (int64_t r = 0; r < rows; ++r, row.Next()) {
    const Source values = x + row.x();
    for (int64_t i = 0; i < n; ++i) {
      totals[i] = reducer.Fold(totals[i], reducer.Map(values[i], at + i * step));
    }
  }
  for (int64_t i = 0; i < n; ++i) out[at + i * step] = finish(totals[i], at + i * step);
}

template <typename Source, typename R, typename Reducer, typename Finish>
void ReduceColumns(const ReducePlan& plan, int num_threads, Source x, R* out,
                   const Reducer& reducer, const Finish& finish) {
  const int64_t width = plan.inner.size;
  const int64_t tiles = (width + kTile - 1) / kTile;
  const int64_t tasks = plan.kept.count() * tiles;
  const int64_t grain = OutputGrain(plan.reduced.count() * std::min(width, kTile));
  ParallelFor(num_threads, tasks, grain, [&](int64_t begin, int64_t end) {
    LoopCursor at(plan.kept, begin / tiles);
    int64_t tile = begin % tiles;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = tile * kTile;
      ReduceTile(plan.reduced, x + at.x() + first, std::min(kTile, width - first), out,
                 at.y() + first * plan.inner.y_step, plan.inner.y_step, reducer, finish);
      if (++tile == tiles) {
        tile = 0;
        at.Next();
      }
    }
  });
}

}  // namespace reduce

// out[o] = finish(fold of Map(x, o) over the reduced dimensions, o) for every position o of the
// output. No elements give finish(Init(), o).
template <typename Source, typename R, typename Reducer, typename Finish>
void RunReduce(const ReducePlan& plan, int num_threads, Source x, R* out, const Reducer& reducer,
               const Finish& finish) {
  if (plan.rows) {
    reduce::ReduceRows(plan, num_threads, x, out, reducer, finish);
  } else {
    reduce::ReduceColumns(plan, num_threads, x, out, reducer, finish);
  }
}

}  // namespace interp
