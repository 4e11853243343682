// lu_grad: with gradients of L and U taken from Out@GRAD, and X = P [L1; L2] [U1 U2] with square L1
// and U1,
//   X@GRAD of the square part = L1^-T (tril(L1^T L1@GRAD - U2@GRAD U2^T, -1)
//                                      + triu(U1@GRAD U1^T - L2^T L2@GRAD)) U1^-T;
// rows below it get L2@GRAD U1^-T, columns beside it L1^-T U2@GRAD; then rows are exchanged back.
// lu_unpack_grad: the gradients of L and U in one matrix.
#include <algorithm>
#include <vector>

#include "kernels/linalg/matrices.h"
#include "kernels/linalg/pivots.h"
#include "kernels/linalg/product.h"
#include "kernels/util/check_shape.h"

namespace interp::linalg {
namespace {

constexpr int kOut = 0;
constexpr int kPivots = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

absl::Status InferLuGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckMatrices(ctx, kOut, "Out"));
  const Shape& out = ctx.input(kOut).shape;
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kPivots, "Pivots", PivotsShape(out)));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", out));
  if (ctx.input(kPivots).dtype != DType::kInt32) {
    return InvalidArgument("input 'Pivots' is ", DescribeType(ctx.input(kPivots)),
                           ", expected int32");
  }
  ctx.ShareShape(kOut, kXGrad);
  return absl::OkStatus();
}

// Of L U, before rows are exchanged.
template <typename T>
Matrix<T> GradientOf(const Matrix<T>& lu, const Matrix<T>& grad) {
  const Eigen::Index n = std::min(lu.rows(), lu.cols());
  const Eigen::Index below = lu.rows() - n;
  const Eigen::Index beside = lu.cols() - n;
  const Matrix<T> l1 = lu.topLeftCorner(n, n).template triangularView<Eigen::UnitLower>();
  const Matrix<T> u1 = lu.topLeftCorner(n, n).template triangularView<Eigen::Upper>();
  const Matrix<T> l1_grad =
      grad.topLeftCorner(n, n).template triangularView<Eigen::StrictlyLower>();
  const Matrix<T> u1_grad = grad.topLeftCorner(n, n).template triangularView<Eigen::Upper>();
  Matrix<T> of_lower = Product<T>(l1.transpose(), l1_grad);
  Matrix<T> of_upper = Product<T>(u1_grad, u1.transpose());
  if (below > 0) {
    of_upper -=
        Product<T>(lu.bottomLeftCorner(below, n).transpose(), grad.bottomLeftCorner(below, n));
  }
  if (beside > 0) {
    of_lower -=
        Product<T>(grad.topRightCorner(n, beside), lu.topRightCorner(n, beside).transpose());
  }
  Matrix<T> inner = of_lower.template triangularView<Eigen::StrictlyLower>();
  inner += Matrix<T>(of_upper.template triangularView<Eigen::Upper>());
  const Matrix<T> left = l1.transpose().template triangularView<Eigen::UnitUpper>().solve(inner);
  const auto by_u1 = [&u1](const Matrix<T>& m) -> Matrix<T> {
    return u1.template triangularView<Eigen::Upper>().solve(Matrix<T>(m.transpose())).transpose();
  };
  Matrix<T> result(lu.rows(), lu.cols());
  result.topLeftCorner(n, n) = by_u1(left);
  if (below > 0) result.bottomLeftCorner(below, n) = by_u1(grad.bottomLeftCorner(below, n));
  if (beside > 0) {
    result.topRightCorner(n, beside) =
        l1.transpose().template triangularView<Eigen::UnitUpper>().solve(
            Matrix<T>(grad.topRightCorner(n, beside)));
  }
  return result;
}

template <typename T>
absl::Status LuGrad(KernelContext& ctx) {
  const Tensor& out = ctx.input(kOut);
  const Matrices in = MatricesOf(out.shape);
  const int64_t steps = std::min(in.rows, in.cols);
  const int32_t* pivots = ctx.input(kPivots).data<int32_t>();
  for (int64_t i = 0; i < in.count && in.size() > 0; ++i, pivots += steps) {
    INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> rows, RowsOf(pivots, steps, in.rows));
    const Matrix<T> grad =
        GradientOf<T>(MatrixAt<T>(out, in, i), MatrixAt<T>(ctx.input(kOutGrad), in, i));
    MatrixMap<T> x_grad = MatrixAt<T>(ctx.output(kXGrad), in, i);
    for (int64_t k = 0; k < in.rows; ++k) x_grad.row(rows[k]) = grad.row(k);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "lu_grad",
    .inputs = {{"Out"}, {"Pivots", kAnyDType}, {"Out@GRAD"}, {"X", kOptional | kNoNeedBuffer}},
    .outputs = {{"X@GRAD"}},
    .infer = InferLuGrad,
    .kernels = {WideRow<float, LuGrad<double>>(), Row<double, LuGrad<double>>()},
});

constexpr int kX = 0;
constexpr int kLGrad = 5;
constexpr int kUGrad = 6;

absl::Status InferUnpackGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckMatrices(ctx, kX, "X"));
  const Shape& x = ctx.input(kX).shape;
  const Matrices in = MatricesOf(x);
  const int64_t steps = std::min(in.rows, in.cols);
  const Shape l = WithMatrix(BatchOf(x), in.rows, steps);
  const Shape u = WithMatrix(BatchOf(x), steps, in.cols);
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kLGrad, "L@GRAD", l));
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kUGrad, "U@GRAD", u));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status UnpackGrad(KernelContext& ctx) {
  Tensor& out = ctx.output(kXGrad);
  const Matrices in = MatricesOf(out.shape);
  const int64_t steps = std::min(in.rows, in.cols);
  const Tensor* const l = ctx.optional_input(kLGrad);
  const Tensor* const u = ctx.optional_input(kUGrad);
  for (int64_t i = 0; i < in.count && in.size() > 0; ++i) {
    MatrixMap<T> grad = MatrixAt<T>(out, in, i);
    grad.setZero();
    if (l != nullptr) {
      grad.leftCols(steps) += Matrix<T>(MatrixAt<T>(*l, {in.count, in.rows, steps}, i)
                                            .template triangularView<Eigen::StrictlyLower>());
    }
    if (u != nullptr) {
      grad.topRows(steps) += Matrix<T>(
          MatrixAt<T>(*u, {in.count, steps, in.cols}, i).template triangularView<Eigen::Upper>());
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "lu_unpack_grad",
    .inputs = {{"X", kNoNeedBuffer},
               {"Pivots", kOptional | kAnyDType | kNoNeedBuffer},
               {"L", kOptional | kNoNeedBuffer},
               {"U", kOptional | kNoNeedBuffer},
               {"Pmat", kOptional | kNoNeedBuffer},
               {"L@GRAD", kOptional},
               {"U@GRAD", kOptional}},
    .outputs = {{"X@GRAD"}},
    .infer = InferUnpackGrad,
    .kernels = {WideRow<float, UnpackGrad<double>>(), Row<double, UnpackGrad<double>>()},
});

}  // namespace
}  // namespace interp::linalg
