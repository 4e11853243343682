// The row exchanges of an LU decomposition.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/shape.h"
#include "core/status.h"

namespace interp::linalg {

// One pivot a step. REQUIRES: rank 2 or more.
inline Shape PivotsShape(const Shape& x) {
  Shape shape = x;
  shape.resize(x.rank() - 1);
  shape[shape.rank() - 1] = std::min(x.back(1), x.back(2));
  return shape;
}

// Where each row of L U lies in the matrix that was decomposed.
inline absl::StatusOr<std::vector<int64_t>> RowsOf(const int32_t* pivots, int64_t steps,
                                                   int64_t rows) {
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t k = 0; k < steps; ++k) {
    if (pivots[k] < 1 || pivots[k] > rows) {
      return InvalidArgument("'Pivots' has the value ", pivots[k], ", expected 1 to ", rows);
    }
    std::swap(order[k], order[pivots[k] - 1]);
  }
  return order;
}

}  // namespace interp::linalg
