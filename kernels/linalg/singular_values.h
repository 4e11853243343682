// The singular value decomposition of one matrix, X = U diag(s) V^T with s in descending order.
#pragma once

#include "core/status.h"
#include "kernels/linalg/matrices.h"

namespace interp::linalg {

// Columns of U and V: none, as many as there are singular values, or all.
enum class SingularVectors : int8_t { kNone, kThin, kFull };

struct SingularValues {
  Vector<double> values;
  Matrix<double> u;
  Matrix<double> v;
};

// InvalidArgument when matrix `index` of the input holds NaN or infinity. REQUIRES: rows and
// columns.
absl::StatusOr<SingularValues> Decompose(const Matrix<double>& matrix, int64_t index,
                                         SingularVectors vectors);

}  // namespace interp::linalg
