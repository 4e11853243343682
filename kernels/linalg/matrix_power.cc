// matrix_power: Out = X^n for square matrices; n < 0 takes the inverse.
// matrix_power_grad: with Y = X or its inverse and k = |n|, the gradient of Y is the sum over i < k
// of (Y^T)^i Out@GRAD (Y^T)^(k - 1 - i); that of X is -Y^T of it Y^T for the inverse.
#include <Eigen/LU>

#include "kernels/linalg/matrices.h"
#include "kernels/linalg/product.h"
#include "kernels/util/check_shape.h"

namespace interp::linalg {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct PowerAttrs {
  int64_t n = 1;
};

PowerAttrs ReadPowerAttrs(AttrReader& reader) { return {reader.Int("n", 1)}; }

absl::Status InferPower(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSquare(ctx, kX, "X"));
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

// X, or its inverse for n < 0.
template <typename T>
absl::StatusOr<Matrix<T>> BaseOf(const Tensor& x, const Matrices& in, int64_t i, int64_t n) {
  const Matrix<T> matrix = MatrixAt<T>(x, in, i);
  if (n >= 0) return matrix;
  const Eigen::PartialPivLU<Matrix<T>> lu(matrix);
  if (!(lu.matrixLU().diagonal().cwiseAbs().minCoeff() > T{0})) {
    return InvalidArgument("matrix ", i, " of input 'X' has no inverse");
  }
  return Matrix<T>(lu.inverse());
}

// By squares: 2 log2(n) products.
template <typename T>
Matrix<T> PowerOf(Matrix<T> base, int64_t n) {
  Matrix<T> result = Matrix<T>::Identity(base.rows(), base.cols());
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) result = Product<T>(result, base);
    if (n > 1) base = Product<T>(base, base);
  }
  return result;
}

template <typename T>
absl::Status Power(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const int64_t n = ctx.attrs<PowerAttrs>().n;
  const Matrices in = MatricesOf(x.shape);
  for (int64_t i = 0; i < in.count && in.size() > 0; ++i) {
    INTERP_ASSIGN_OR_RETURN(const Matrix<T> base, BaseOf<T>(x, in, i, n));
    MatrixAt<T>(ctx.output(kOut), in, i) = PowerOf<T>(base, n < 0 ? -n : n);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "matrix_power",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<PowerAttrs, ReadPowerAttrs>,
    .infer = InferPower,
    .kernels = {WideRow<float, Power<double>>(), Row<double, Power<double>>()},
    .gradient = {.inputs = {"X", "Out", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

absl::Status InferPowerGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSquare(ctx, kX, "X"));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", ctx.input(kX).shape));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

// With S(k) = the sum over i < k of A^i G A^(k - 1 - i): S(2k) = A^k S(k) + S(k) A^k and
// S(k + 1) = A S(k) + G A^k, so that the number of products grows with log2(n).
template <typename T>
Matrix<T> SumOfProducts(const Matrix<T>& a, const Matrix<T>& grad, int64_t n) {
  Matrix<T> sum = Matrix<T>::Zero(a.rows(), a.cols());
  Matrix<T> power = Matrix<T>::Identity(a.rows(), a.cols());
  for (int bit = 62; bit >= 0; --bit) {
    if ((n >> bit) == 0) continue;
    sum = Product<T>(power, sum) + Product<T>(sum, power);
    power = Product<T>(power, power);
    if ((n >> bit) % 2 == 1) {
      sum = Product<T>(a, sum) + Product<T>(grad, power);
      power = Product<T>(power, a);
    }
  }
  return sum;
}

template <typename T>
absl::Status PowerGrad(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const int64_t n = ctx.attrs<PowerAttrs>().n;
  const Matrices in = MatricesOf(x.shape);
  for (int64_t i = 0; i < in.count && in.size() > 0; ++i) {
    INTERP_ASSIGN_OR_RETURN(const Matrix<T> base, BaseOf<T>(x, in, i, n));
    const Matrix<T> transposed = base.transpose();
    const Matrix<T> grad = MatrixAt<T>(ctx.input(kOutGrad), in, i);
    Matrix<T> sum = SumOfProducts<T>(transposed, grad, n < 0 ? -n : n);
    if (n < 0) sum = -Product<T>(Product<T>(transposed, sum), transposed);
    MatrixAt<T>(ctx.output(kXGrad), in, i) = sum;
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "matrix_power_grad",
    .inputs = {{"X"}, {"Out@GRAD"}, {"Out", kOptional | kNoNeedBuffer}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<PowerAttrs, ReadPowerAttrs>,
    .infer = InferPowerGrad,
    .kernels = {WideRow<float, PowerGrad<double>>(), Row<double, PowerGrad<double>>()},
});

}  // namespace
}  // namespace interp::linalg
