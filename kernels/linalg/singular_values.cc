#include "kernels/linalg/singular_values.h"

#include <Eigen/SVD>

#include "kernels/linalg/finite.h"

namespace interp::linalg {

absl::StatusOr<SingularValues> Decompose(const Matrix<double>& matrix, int64_t index,
                                         SingularVectors vectors) {
  INTERP_RETURN_IF_ERROR(CheckFinite(matrix, index));
  unsigned options = 0;
  if (vectors == SingularVectors::kThin) options = Eigen::ComputeThinU | Eigen::ComputeThinV;
  if (vectors == SingularVectors::kFull) options = Eigen::ComputeFullU | Eigen::ComputeFullV;
  const Eigen::JacobiSVD<Matrix<double>> solver(matrix, options);
  SingularValues result;
  result.values = solver.singularValues();
  if (vectors != SingularVectors::kNone) {
    result.u = solver.matrixU();
    result.v = solver.matrixV();
  }
  return result;
}

}  // namespace interp::linalg
