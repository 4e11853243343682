// eig_grad: with V for the eigenvectors and w for the eigenvalues,
//
//   X@GRAD = V^-H (diag(w@GRAD) + M) V^H,  M(k, j) = (V^H V@GRAD - V^H V D)(k, j) / conj(w_j - w_k)
//
// where D is the real part of the diagonal of V^H V@GRAD: eigenvectors keep length 1. The result is
// complex for a real X, too, whose gradient is the real part (passes/import/real_gradients.h).
#include <Eigen/LU>
#include <complex>

#include "kernels/complex/complex_dtype.h"
#include "kernels/linalg/matrices.h"
#include "kernels/linalg/product.h"
#include "kernels/util/check_shape.h"

namespace interp::linalg {
namespace {

constexpr int kValues = 0;
constexpr int kVectors = 1;
constexpr int kValuesGrad = 2;
constexpr int kVectorsGrad = 3;
constexpr int kXGrad = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSquare(ctx, kVectors, "Eigenvectors"));
  const Shape& vectors = ctx.input(kVectors).shape;
  Shape values = vectors;
  values.resize(vectors.rank() - 1);
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kValues, "Eigenvalues", values));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kValuesGrad, "Eigenvalues@GRAD", values));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kVectorsGrad, "Eigenvectors@GRAD", vectors));
  ctx.ShareShape(kVectors, kXGrad);
  return absl::OkStatus();
}

// diag(w@GRAD) + M.
template <typename T>
Matrix<T> Inner(const Matrix<T>& v, const Matrix<T>& v_grad, const T* values, const T* grads) {
  Matrix<T> inner = Product<T>(v.adjoint(), v_grad);
  const Matrix<T> lengths = Product<T>(v.adjoint(), v);
  const Vector<T> turned = inner.diagonal().real().template cast<T>();
  for (Eigen::Index k = 0; k < inner.rows(); ++k) {
    for (Eigen::Index j = 0; j < inner.cols(); ++j) {
      inner(k, j) =
          k == j ? grads[k]
                 : (inner(k, j) - lengths(k, j) * turned[j]) / std::conj(values[j] - values[k]);
    }
  }
  return inner;
}

template <typename T>
absl::Status EigGrad(KernelContext& ctx) {
  const Tensor& vectors = ctx.input(kVectors);
  if (vectors.numel() == 0) return absl::OkStatus();
  const Matrices in = MatricesOf(vectors.shape);
  const T* values = ctx.input(kValues).data<T>();
  const T* grads = ctx.input(kValuesGrad).data<T>();
  for (int64_t i = 0; i < in.count; ++i, values += in.rows, grads += in.rows) {
    const Matrix<T> v = MatrixAt<T>(vectors, in, i);
    const Matrix<T> inner = Inner<T>(v, MatrixAt<T>(ctx.input(kVectorsGrad), in, i), values, grads);
    const Matrix<T> adjoint = v.adjoint();
    MatrixAt<T>(ctx.output(kXGrad), in, i) =
        Eigen::PartialPivLU<Matrix<T>>(adjoint).solve(Product<T>(inner, adjoint));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "eig_grad",
    .inputs = {{"Eigenvalues"}, {"Eigenvectors"}, {"Eigenvalues@GRAD"}, {"Eigenvectors@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .infer = Infer,
    .kernels = {WideRow<std::complex<float>, EigGrad<std::complex<double>>>(),
                Row<std::complex<double>, EigGrad<std::complex<double>>>()},
});

}  // namespace
}  // namespace interp::linalg
