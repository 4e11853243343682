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

#include "kernels/util/reduce_columns.h"
#include "kernels/util/reduce_plan.h"
#include "kernels/util/reduce_rows.h"

namespace interp {

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
