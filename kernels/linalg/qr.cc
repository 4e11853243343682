// qr: X = Q R with orthonormal columns of Q and an upper triangular R, by Householder reflections,
// so that signs are those of LAPACK. With k = min(rows, cols), `mode` reduced gives k columns of Q
// and k rows of R, complete all of them, r the R of reduced and no Q.
// qr_grad: for as many rows as columns or more,
//   X@GRAD = (Q@GRAD + Q sym(M)) R^-T with M = R R@GRAD^T - Q@GRAD^T Q,
// where sym mirrors the lower triangle. Else X = [X1 X2] with square X1 and R = [R1 R2]: X1 gets
// the same of R1 and Q@GRAD + X2 R2@GRAD^T, and X2 gets Q R2@GRAD.
#include <Eigen/QR>
#include <algorithm>

#include "kernels/linalg/matrices.h"
#include "kernels/linalg/product.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/read_choice.h"

namespace interp::linalg {
namespace {

constexpr int kX = 0;
constexpr int kQ = 0;
constexpr int kR = 1;

enum class Mode : int8_t { kReduced, kComplete, kR };

struct QrAttrs {
  Mode mode = Mode::kReduced;
};

QrAttrs ReadQrAttrs(AttrReader& reader) {
  return {ReadChoice<Mode>(
      reader, "mode",
      {{"reduced", Mode::kReduced}, {"complete", Mode::kComplete}, {"r", Mode::kR}})};
}

// Shapes of Q and R, the columns of Q being the rows of R.
struct Factors {
  Shape q, r;
};

Factors FactorsOf(const Shape& x, Mode mode) {
  const Matrices in = MatricesOf(x);
  const int64_t inner = mode == Mode::kComplete ? in.rows : std::min(in.rows, in.cols);
  const Shape batch = BatchOf(x);
  return {mode == Mode::kR ? Shape{0} : WithMatrix(batch, in.rows, inner),
          WithMatrix(batch, inner, in.cols)};
}

absl::Status InferQr(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckMatrices(ctx, kX, "X"));
  const Factors factors = FactorsOf(ctx.input(kX).shape, ctx.attrs<QrAttrs>().mode);
  ctx.SetShape(kQ, factors.q);
  ctx.SetShape(kR, factors.r);
  return absl::OkStatus();
}

template <typename T>
absl::Status Qr(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Mode mode = ctx.attrs<QrAttrs>().mode;
  Tensor* const q = mode == Mode::kR ? nullptr : ctx.optional_output(kQ);
  Tensor* const r = ctx.optional_output(kR);
  const Matrices in = MatricesOf(x.shape);
  const int64_t inner = mode == Mode::kComplete ? in.rows : std::min(in.rows, in.cols);
  const Matrices q_shape = {in.count, in.rows, inner};
  for (int64_t i = 0; i < in.count && in.rows > 0; ++i) {
    if (in.cols == 0) {
      if (q != nullptr) MatrixAt<T>(*q, q_shape, i).setIdentity();
      continue;
    }
    const Eigen::HouseholderQR<Matrix<T>> factors(MatrixAt<T>(x, in, i));
    if (q != nullptr) {
      MatrixMap<T> to = MatrixAt<T>(*q, q_shape, i);
      to = factors.householderQ() * Matrix<T>::Identity(in.rows, inner);
    }
    if (r != nullptr) {
      MatrixMap<T> to = MatrixAt<T>(*r, {in.count, inner, in.cols}, i);
      to = factors.matrixQR().topRows(inner).template triangularView<Eigen::Upper>();
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "qr",
    .inputs = {{"X"}},
    .outputs = {{"Q", kOptional}, {"R", kOptional}},
    .parse = ParseAttrs<QrAttrs, ReadQrAttrs>,
    .infer = InferQr,
    .kernels = {WideRow<float, Qr<double>>(), Row<double, Qr<double>>()},
    .gradient = {.inputs = {"X", "Q", "R", "Q@GRAD", "R@GRAD"}, .outputs = {"X@GRAD"}},
});

// Inputs of the gradient.
constexpr int kForwardQ = 1;
constexpr int kForwardR = 2;
constexpr int kQGrad = 3;
constexpr int kRGrad = 4;

absl::Status InferQrGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckMatrices(ctx, kX, "X"));
  const Shape& x = ctx.input(kX).shape;
  const Matrices in = MatricesOf(x);
  const Mode mode = ctx.attrs<QrAttrs>().mode;
  if (mode == Mode::kR) {
    return InvalidArgument(
        "attribute 'mode' is 'r', which leaves out the Q that the gradient takes; use 'reduced'");
  }
  if (mode == Mode::kComplete && in.rows > in.cols) {
    return InvalidArgument("attribute 'mode' is 'complete' and input 'X' has shape ", ToString(x),
                           ": more rows than columns have no gradient; use 'reduced'");
  }
  const Factors factors = FactorsOf(x, mode);
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kForwardQ, "Q", factors.q));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kForwardR, "R", factors.r));
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kQGrad, "Q@GRAD", factors.q));
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kRGrad, "R@GRAD", factors.r));
  ctx.ShareShape(kX, kX);
  return absl::OkStatus();
}

// The gradient of Q R for a square R.
template <typename T>
Matrix<T> GradientOf(const Matrix<T>& q, const Matrix<T>& r, const Matrix<T>& q_grad,
                     const Matrix<T>& r_grad) {
  const Matrix<T> m = Product<T>(r, r_grad.transpose()) - Product<T>(q_grad.transpose(), q);
  const Matrix<T> mirrored = m.template selfadjointView<Eigen::Lower>();
  const Matrix<T> sum = q_grad + Product<T>(q, mirrored);
  return r.template triangularView<Eigen::Upper>().solve(Matrix<T>(sum.transpose())).transpose();
}

template <typename T>
absl::Status QrGrad(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Matrices in = MatricesOf(x.shape);
  const int64_t k = std::min(in.rows, in.cols);
  const int64_t beside = in.cols - k;
  const Matrices q_shape = {in.count, in.rows, k};
  const Matrices r_shape = {in.count, k, in.cols};
  const auto gradient_at = [&ctx](int slot, const Matrices& shape, int64_t i) -> Matrix<T> {
    const Tensor* const grad = ctx.optional_input(slot);
    if (grad == nullptr) return Matrix<T>::Zero(shape.rows, shape.cols);
    return MatrixAt<T>(*grad, shape, i);
  };
  for (int64_t i = 0; i < in.count && in.size() > 0; ++i) {
    const Matrix<T> q = MatrixAt<T>(ctx.input(kForwardQ), q_shape, i);
    const Matrix<T> r = MatrixAt<T>(ctx.input(kForwardR), r_shape, i).leftCols(k);
    const Matrix<T> r_grad = gradient_at(kRGrad, r_shape, i);
    Matrix<T> q_grad = gradient_at(kQGrad, q_shape, i);
    MatrixMap<T> x_grad = MatrixAt<T>(ctx.output(kX), in, i);
    if (beside > 0) {
      q_grad +=
          Product<T>(MatrixAt<T>(x, in, i).rightCols(beside), r_grad.rightCols(beside).transpose());
      x_grad.rightCols(beside) = Product<T>(q, r_grad.rightCols(beside));
    }
    x_grad.leftCols(k) = GradientOf<T>(q, r, q_grad, r_grad.leftCols(k));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "qr_grad",
    .inputs = {{"X"}, {"Q"}, {"R"}, {"Q@GRAD", kOptional}, {"R@GRAD", kOptional}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<QrAttrs, ReadQrAttrs>,
    .infer = InferQrGrad,
    .kernels = {WideRow<float, QrGrad<double>>(), Row<double, QrGrad<double>>()},
});

}  // namespace
}  // namespace interp::linalg
