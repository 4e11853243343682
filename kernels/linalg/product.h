// Products of matrices.
#pragma once

#include "kernels/linalg/matrices.h"

namespace interp::linalg {

template <typename T>
using MatrixRef = Eigen::Ref<const Matrix<T>>;

// a b, for float, double and complex numbers of them. Compiled once: every form of product that
// Eigen makes takes seconds to compile. A transposed argument is copied, which a product of some
// size hides.
template <typename T>
Matrix<T> Product(const MatrixRef<T>& a, const MatrixRef<T>& b);

}  // namespace interp::linalg
