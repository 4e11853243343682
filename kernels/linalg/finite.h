// A check in front of iterations that would not end well on NaN.
#pragma once

#include "core/status.h"

namespace interp::linalg {

// InvalidArgument when matrix `index` of the input holds NaN or infinity.
template <typename M>
absl::Status CheckFinite(const M& matrix, int64_t index) {
  if (matrix.allFinite()) return absl::OkStatus();
  return InvalidArgument("matrix ", index, " of input 'X' has an element that is not finite");
}

}  // namespace interp::linalg
