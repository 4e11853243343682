// The singular value decomposition of one matrix, X = U diag(s) V^T with s in descending order.
#pragma once

#include "core/status.h"
#include "kernels/linalg/matrices.h"

namespace interp::linalg {

// Columns of U and V: none, as many as there are singular values, or all.
enum class SingularVectors : int8_t { kNone, kThin, kFull };

template <typename T>
struct SingularValues {
  Vector<T> values;
  Matrix<T> u;
  Matrix<T> v;
};

// InvalidArgument when matrix `index` of the input holds NaN or infinity. REQUIRES: rows and
// columns. T is float or double.
template <typename T>
absl::StatusOr<SingularValues<T>> Decompose(const Matrix<T>& matrix, int64_t index,
                                            SingularVectors vectors);

extern template absl::StatusOr<SingularValues<float>> Decompose(const Matrix<float>&, int64_t,
                                                                SingularVectors);
extern template absl::StatusOr<SingularValues<double>> Decompose(const Matrix<double>&, int64_t,
                                                                 SingularVectors);

}  // namespace interp::linalg
