#include "kernels/linalg/product.h"

#include <complex>

namespace interp::linalg {

template <typename T>
Matrix<T> Product(const MatrixRef<T>& a, const MatrixRef<T>& b) {
  return a * b;
}

template Matrix<float> Product<float>(const MatrixRef<float>&, const MatrixRef<float>&);
template Matrix<double> Product<double>(const MatrixRef<double>&, const MatrixRef<double>&);
template Matrix<std::complex<float>> Product<std::complex<float>>(
    const MatrixRef<std::complex<float>>&, const MatrixRef<std::complex<float>>&);
template Matrix<std::complex<double>> Product<std::complex<double>>(
    const MatrixRef<std::complex<double>>&, const MatrixRef<std::complex<double>>&);

}  // namespace interp::linalg
