// Rows of X beside those of Y, or each beside the only row of Y: what cos_sim and
// squared_l2_distance compare.
#pragma once

#include <algorithm>

#include "core/op_context.h"
#include "kernels/util/parallel_for.h"

namespace interp {

struct RowPairs {
  int64_t rows = 0;
  int64_t width = 0;
  bool one_y = false;  // Y has one row for all rows of X

  // The row of Y that belongs to a row of X.
  int64_t row_of_y(int64_t row) const { return one_y ? 0 : row; }
};

// Checks the shapes of X and Y: [N,...] and [N,...] or [1,...].
inline absl::StatusOr<RowPairs> ResolveRowPairs(const Shape& x, const Shape& y) {
  if (x.rank() < 2) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected 2 dims or more");
  }
  const int64_t width = x.numel(1, x.rank());
  if (y.rank() != x.rank() || y.numel(1, y.rank()) != width || (y[0] != x[0] && y[0] != 1)) {
    return InvalidArgument("input 'Y' has shape ", ToString(y), ", expected that of 'X', ",
                           ToString(x), ", or one row of it");
  }
  return RowPairs{x[0], width, y[0] != x[0]};
}

}  // namespace interp
