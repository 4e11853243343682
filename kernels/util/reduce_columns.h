// Reductions that keep the dimension which is fastest in memory, see reduce.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/util/reduce_plan.h"

namespace interp::reduce {

inline constexpr int64_t kTile = 128;  // outputs folded together in columns

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

// The same for all outputs of a row that is narrow and whose reduced rows lie one after the other:
// several rows are folded side by side, so that the loop over them is as long as a tile.
template <typename Source, typename R, typename Reducer, typename Finish>
void ReduceNarrowTile(LoopNest reduced, Source x, int64_t width, R* out, int64_t at, int64_t step,
                      const Reducer& reducer, const Finish& finish) {
  const int64_t size = reduced.Pop().size * width;
  const int64_t length = kTile / width * width;
  typename Reducer::Acc totals[kTile];
  int64_t positions[kTile];
  std::fill(totals, totals + length, reducer.Init());
  for (int64_t begin = 0; begin < length; begin += width) {
    for (int64_t i = 0; i < width; ++i) positions[begin + i] = at + i * step;
  }
  LoopCursor row(reduced);
  const int64_t rows = reduced.count();
  for (int64_t r = 0; r < rows; ++r, row.Next()) {
    for (int64_t begin = 0; begin < size; begin += length) {
      const Source values = x + (row.x() + begin);
      const int64_t n = std::min(length, size - begin);
      for (int64_t i = 0; i < n; ++i) {
        totals[i] = reducer.Fold(totals[i], reducer.Map(values[i], positions[i]));
      }
    }
  }
  for (int64_t begin = width; begin < length; begin += width) {
    for (int64_t i = 0; i < width; ++i) {
      totals[i] = reducer.Fold(totals[i], totals[begin + i]);
    }
  }
  for (int64_t i = 0; i < width; ++i) out[positions[i]] = finish(totals[i], positions[i]);
}

// Whether ReduceNarrowTile is for the plan.
inline bool IsNarrow(const ReducePlan& plan) {
  const int64_t width = plan.inner.size;
  return 2 * width <= kTile && plan.reduced.size() > 0 && plan.reduced.innermost().x_step == width;
}

template <typename Source, typename R, typename Reducer, typename Finish>
void ReduceColumns(const ReducePlan& plan, int num_threads, Source x, R* out,
                   const Reducer& reducer, const Finish& finish) {
  const int64_t width = plan.inner.size;
  const int64_t tiles = (width + kTile - 1) / kTile;
  const int64_t tasks = plan.kept.count() * tiles;
  const int64_t grain = GrainFor(plan.reduced.count() * std::min(width, kTile));
  const bool narrow = IsNarrow(plan);
  ParallelFor(num_threads, tasks, grain, [&](int64_t begin, int64_t end) {
    LoopCursor at(plan.kept, begin / tiles);
    int64_t tile = begin % tiles;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = tile * kTile;
      const Source from = x + (at.x() + first);
      const int64_t to = at.y() + first * plan.inner.y_step;
      if (narrow) {
        ReduceNarrowTile(plan.reduced, from, width, out, to, plan.inner.y_step, reducer, finish);
      } else {
        ReduceTile(plan.reduced, from, std::min(kTile, width - first), out, to, plan.inner.y_step,
                   reducer, finish);
      }
      if (++tile == tiles) {
        tile = 0;
        at.Next();
      }
    }
  });
}

}  // namespace interp::reduce
