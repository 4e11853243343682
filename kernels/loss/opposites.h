// WriteOpposites: the gradients of losses of a difference.
#pragma once

#include "kernels/loss/pair_loss.h"
#include "kernels/util/data_or_null.h"

namespace interp {

// Outputs 0 and 1, where they are wanted: value(i) and -value(i) for i in [0, n), the gradients of
// the operands of a loss of a difference.
template <typename T, typename Value>
void WriteOpposites(KernelContext& ctx, int64_t n, const Value& value) {
  T* const plus = OutputOrNull<T>(ctx, 0);
  T* const minus = OutputOrNull<T>(ctx, 1);
  ParallelFor(ctx.num_threads(), n, pair_loss::kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T v = value(i);
      if (plus != nullptr) plus[i] = v;
      if (minus != nullptr) minus[i] = -v;
    }
  });
}

}  // namespace interp
