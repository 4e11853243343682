// cholesky: Out = the lower triangular L of X = L L^T; with `upper` U of X = U^T U. Only that
// triangle of X is read. cholesky_grad: X@GRAD is symmetric, half of it for either triangle.
#include <Eigen/Cholesky>

#include "kernels/linalg/matrices.h"
#include "kernels/linalg/product.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/gradient_shape.h"

namespace interp::linalg {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct CholeskyAttrs {
  bool upper = false;
};

CholeskyAttrs ReadCholeskyAttrs(AttrReader& reader) { return {reader.Bool("upper", false)}; }

absl::Status InferCholesky(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSquare(ctx, kX, "X"));
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status Cholesky(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  if (x.numel() == 0) return absl::OkStatus();
  const bool upper = ctx.attrs<CholeskyAttrs>().upper;
  const Matrices matrices = MatricesOf(x.shape);
  for (int64_t i = 0; i < matrices.count; ++i) {
    Matrix<T> lower = MatrixAt<T>(x, matrices, i);
    if (upper) lower.transposeInPlace();
    const Eigen::LLT<Matrix<T>> llt(lower);
    if (llt.info() != Eigen::Success) {
      return InvalidArgument("matrix ", i, " of input 'X' is not positive definite");
    }
    lower = llt.matrixL();
    MatrixAt<T>(out, matrices, i) = upper ? Matrix<T>(lower.transpose()) : lower;
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "cholesky",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<CholeskyAttrs, ReadCholeskyAttrs>,
    .infer = InferCholesky,
    .kernels = {WideRow<float, Cholesky<double>>(), Row<double, Cholesky<double>>()},
    .gradient = {.inputs = {"Out", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kFactor = 0;
constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

absl::Status InferCholeskyGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSquare(ctx, kFactor, "Out"));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", ctx.input(kFactor).shape));
  ctx.ShareShape(kFactor, kXGrad);
  return absl::OkStatus();
}

// With P = the lower triangle of L^T L@GRAD, its diagonal halved: the symmetric part of
// L^-T P L^-1.
template <typename T>
Matrix<T> GradientOf(const Matrix<T>& lower, const Matrix<T>& grad) {
  Matrix<T> product = Product<T>(lower.transpose(), grad).template triangularView<Eigen::Lower>();
  product.diagonal() /= T{2};
  const auto transposed = lower.transpose().template triangularView<Eigen::Upper>();
  const Matrix<T> left = transposed.solve(product);
  const Matrix<T> both = transposed.solve(Matrix<T>(left.transpose()));
  return (both + both.transpose()) / T{2};
}

template <typename T>
absl::Status CholeskyGrad(KernelContext& ctx) {
  const Tensor& out = ctx.input(kFactor);
  if (out.numel() == 0) return absl::OkStatus();
  const bool upper = ctx.attrs<CholeskyAttrs>().upper;
  const Matrices matrices = MatricesOf(out.shape);
  for (int64_t i = 0; i < matrices.count; ++i) {
    Matrix<T> factor = MatrixAt<T>(out, matrices, i);
    Matrix<T> grad = MatrixAt<T>(ctx.input(kOutGrad), matrices, i);
    if (upper) {
      factor.transposeInPlace();
      grad.transposeInPlace();
    }
    MatrixAt<T>(ctx.output(kXGrad), matrices, i) = GradientOf<T>(factor, grad);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "cholesky_grad",
    .inputs = {{"Out"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<CholeskyAttrs, ReadCholeskyAttrs>,
    .infer = InferCholeskyGrad,
    .kernels = {WideRow<float, CholeskyGrad<double>>(), Row<double, CholeskyGrad<double>>()},
});

}  // namespace
}  // namespace interp::linalg
