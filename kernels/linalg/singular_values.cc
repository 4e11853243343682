#include "kernels/linalg/singular_values.h"

#include <Eigen/SVD>

#include "kernels/linalg/finite.h"

namespace interp::linalg {

template <typename T>
absl::StatusOr<SingularValues<T>> Decompose(const Matrix<T>& matrix, int64_t index,
                                            SingularVectors vectors) {
  INTERP_RETURN_IF_ERROR(CheckFinite(matrix, index));
  unsigned options = 0;
  if (vectors == SingularVectors::kThin) options = Eigen::ComputeThinU | Eigen::ComputeThinV;
  if (vectors == SingularVectors::kFull) options = Eigen::ComputeFullU | Eigen::ComputeFullV;
  const Eigen::JacobiSVD<Matrix<T>> solver(matrix, options);
  SingularValues<T> result;
  result.values = solver.singularValues();
  if (vectors != SingularVectors::kNone) {
    result.u = solver.matrixU();
    result.v = solver.matrixV();
  }
  return result;
}

template absl::StatusOr<SingularValues<float>> Decompose(const Matrix<float>&, int64_t,
                                                         SingularVectors);
template absl::StatusOr<SingularValues<double>> Decompose(const Matrix<double>&, int64_t,
                                                          SingularVectors);

}  // namespace interp::linalg
