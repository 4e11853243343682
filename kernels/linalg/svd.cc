// svd: X = U diag(S) VH with orthonormal columns of U and rows of VH, S in descending order; with
// `full_matrices` U and VH are square.
// svd_grad: of the first columns of U and rows of VH, as many as S has elements,
//   X@GRAD = U diag(S@GRAD) VH
//            + (U (skew(U^T U@GRAD) F) diag(S) + (I - U U^T) U@GRAD diag(1 / S)) VH
//            + U (diag(S) (skew(VH VH@GRAD^T) F) VH + diag(1 / S) VH@GRAD (I - VH^T VH))
// where skew(M) = M - M^T is multiplied by F(i, j) = 1 / (S[j]^2 - S[i]^2), 0 on the diagonal.
#include <algorithm>

#include "kernels/linalg/singular_values.h"
#include "kernels/util/check_shape.h"

namespace interp::linalg {
namespace {

constexpr int kX = 0;
constexpr int kU = 0;
constexpr int kS = 1;
constexpr int kVh = 2;

struct SvdAttrs {
  bool full = false;
};

SvdAttrs ReadSvdAttrs(AttrReader& reader) { return {reader.Bool("full_matrices", false)}; }

struct Factors {
  Matrices u;
  Matrices vh;
  int64_t values = 0;
};

Factors FactorsOf(const Shape& x, bool full) {
  const Matrices in = MatricesOf(x);
  const int64_t values = std::min(in.rows, in.cols);
  return {{in.count, in.rows, full ? in.rows : values},
          {in.count, full ? in.cols : values, in.cols},
          values};
}

Shape ShapeOf(const Shape& x, const Matrices& matrices) {
  return WithMatrix(BatchOf(x), matrices.rows, matrices.cols);
}

Shape ValuesShape(const Shape& x, int64_t values) {
  Shape shape = BatchOf(x);
  shape.push_back(values);
  return shape;
}

// InvalidArgument unless X holds matrices with rows and columns.
absl::Status CheckX(const OpContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckMatrices(ctx, kX, "X"));
  const Shape& x = ctx.input(kX).shape;
  if (x.back(1) > 0 && x.back(2) > 0) return absl::OkStatus();
  return InvalidArgument("input 'X' has shape ", ToString(x),
                         ", expected matrices of one row and column or more");
}

absl::Status InferSvd(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckX(ctx));
  const Shape& x = ctx.input(kX).shape;
  const Factors factors = FactorsOf(x, ctx.attrs<SvdAttrs>().full);
  ctx.SetShape(kU, ShapeOf(x, factors.u));
  ctx.SetShape(kS, ValuesShape(x, factors.values));
  ctx.SetShape(kVh, ShapeOf(x, factors.vh));
  return absl::OkStatus();
}

absl::Status Svd(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const bool full = ctx.attrs<SvdAttrs>().full;
  const Matrices in = MatricesOf(x.shape);
  const Factors factors = FactorsOf(x.shape, full);
  Tensor* const u = ctx.optional_output(kU);
  Tensor* const vh = ctx.optional_output(kVh);
  for (int64_t i = 0; i < in.count; ++i) {
    INTERP_ASSIGN_OR_RETURN(const SingularValues found,
                            Decompose(MatrixAt<double>(x, in, i), i,
                                      full ? SingularVectors::kFull : SingularVectors::kThin));
    std::copy_n(found.values.data(), factors.values,
                ctx.output(kS).mutable_data<double>() + i * factors.values);
    if (u != nullptr) MatrixAt<double>(*u, factors.u, i) = found.u;
    if (vh != nullptr) MatrixAt<double>(*vh, factors.vh, i) = found.v.transpose();
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "svd",
    .inputs = {{"X"}},
    .outputs = {{"U", kOptional}, {"S"}, {"VH", kOptional}},
    .parse = ParseAttrs<SvdAttrs, ReadSvdAttrs>,
    .infer = InferSvd,
    .kernels = {WideRow<float, Svd>(), Row<double, Svd>()},
    .gradient = {.inputs = {"X", "U", "VH", "S", "U@GRAD", "VH@GRAD", "S@GRAD"},
                 .outputs = {"X@GRAD"}},
});

// Inputs of the gradient.
constexpr int kForwardU = 1;
constexpr int kForwardVh = 2;
constexpr int kForwardS = 3;
constexpr int kUGrad = 4;
constexpr int kVhGrad = 5;
constexpr int kSGrad = 6;
constexpr int kXGrad = 0;

absl::Status InferSvdGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckX(ctx));
  const Shape& x = ctx.input(kX).shape;
  const Factors factors = FactorsOf(x, ctx.attrs<SvdAttrs>().full);
  const Shape u = ShapeOf(x, factors.u);
  const Shape vh = ShapeOf(x, factors.vh);
  const Shape s = ValuesShape(x, factors.values);
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kForwardU, "U", u));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kForwardVh, "VH", vh));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kForwardS, "S", s));
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kUGrad, "U@GRAD", u));
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kVhGrad, "VH@GRAD", vh));
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kSGrad, "S@GRAD", s));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

// (M - M^T) F.
template <typename T>
Matrix<T> Skewed(const Matrix<T>& m, const Vector<T>& s) {
  Matrix<T> result = Matrix<T>::Zero(m.rows(), m.cols());
  for (int64_t i = 0; i < m.rows(); ++i) {
    for (int64_t j = 0; j < m.cols(); ++j) {
      if (i != j) result(i, j) = (m(i, j) - m(j, i)) / ((s(j) - s(i)) * (s(j) + s(i)));
    }
  }
  return result;
}

// What gradients `du` of the orthonormal columns `u` give: the left factor of X@GRAD, of V the
// right one, transposed.
template <typename T>
Matrix<T> OfVectors(const Matrix<T>& u, const Matrix<T>& du, const Vector<T>& s) {
  const Matrix<T> inside = u.transpose() * du;
  Matrix<T> result = u * Skewed<T>(inside, s) * s.asDiagonal();
  if (u.rows() > u.cols()) {
    const Matrix<T> outside = du - u * inside;
    result += outside * s.cwiseInverse().asDiagonal();
  }
  return result;
}

template <typename T>
absl::Status SvdGrad(KernelContext& ctx) {
  const Shape& shape = ctx.input(kX).shape;
  const Matrices in = MatricesOf(shape);
  const Factors factors = FactorsOf(shape, ctx.attrs<SvdAttrs>().full);
  const int64_t k = factors.values;
  for (int64_t i = 0; i < in.count; ++i) {
    const Matrix<T> u = MatrixAt<T>(ctx.input(kForwardU), factors.u, i).leftCols(k);
    const Matrix<T> v = MatrixAt<T>(ctx.input(kForwardVh), factors.vh, i).topRows(k).transpose();
    const Vector<T> s = Eigen::Map<const Vector<T>>(ctx.input(kForwardS).data<T>() + i * k, k);
    // X@GRAD = left V^T + U right^T.
    Matrix<T> left = Matrix<T>::Zero(in.rows, k);
    Matrix<T> right = Matrix<T>::Zero(in.cols, k);
    if (const Tensor* const ds = ctx.optional_input(kSGrad)) {
      left += u * Eigen::Map<const Vector<T>>(ds->data<T>() + i * k, k).asDiagonal();
    }
    if (const Tensor* const du = ctx.optional_input(kUGrad)) {
      left += OfVectors<T>(u, MatrixAt<T>(*du, factors.u, i).leftCols(k), s);
    }
    if (const Tensor* const dvh = ctx.optional_input(kVhGrad)) {
      right += OfVectors<T>(v, MatrixAt<T>(*dvh, factors.vh, i).topRows(k).transpose(), s);
    }
    MatrixAt<T>(ctx.output(kXGrad), in, i) = left * v.transpose() + u * right.transpose();
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "svd_grad",
    .inputs = {{"X", kNoNeedBuffer},
               {"U"},
               {"VH"},
               {"S"},
               {"U@GRAD", kOptional},
               {"VH@GRAD", kOptional},
               {"S@GRAD", kOptional}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<SvdAttrs, ReadSvdAttrs>,
    .infer = InferSvdGrad,
    .kernels = {WideRow<float, SvdGrad<double>>(), Row<double, SvdGrad<double>>()},
});

}  // namespace
}  // namespace interp::linalg
