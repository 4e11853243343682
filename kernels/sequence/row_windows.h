// Rows in the order of time, of sequences or of a batch, as row_conv and its gradient go over them.
#pragma once

#include <cstdint>

#include "kernels/sequence/lod.h"

namespace interp {

// InvalidArgument unless `x`, an input X, is [T,D] with a LoD, or [B,T,D] without.
absl::Status CheckRowsInTime(const Tensor& x);
// The same, and that `filter` is [K,D].
absl::Status CheckRowConv(const Tensor& x, const Shape& filter);

// Calls body(row, begin, end) for the rows [from, to) of `x` and the sequences [begin, end) that
// they are in. REQUIRES: CheckRowConv.
template <typename Body>
void ForEachSequenceRow(const Tensor& x, int64_t from, int64_t to, const Body& body) {
  if (x.lod.empty()) {
    const int64_t steps = x.shape[1];
    for (int64_t t = from; t < to; ++t) body(t, t / steps * steps, (t / steps + 1) * steps);
    return;
  }
  ForEachRow(x.lod.back(), from, to, body);
}

}  // namespace interp
