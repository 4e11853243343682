// eigh: the eigenvalues of symmetric or Hermitian X in ascending order, and orthonormal
// eigenvectors as the columns of a matrix. Only the triangle `UPLO` (L or U) of X is read.
// eigvalsh: the same. Their gradients are Hermitian matrices.
#include <Eigen/Eigenvalues>
#include <algorithm>

#include "kernels/complex/complex_dtype.h"
#include "kernels/linalg/finite.h"
#include "kernels/linalg/matrices.h"
#include "kernels/linalg/product.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/read_choice.h"

namespace interp::linalg {
namespace {

constexpr int kX = 0;
constexpr int kValues = 0;
constexpr int kVectors = 1;

template <typename T>
using RealOf = typename Eigen::NumTraits<T>::Real;

struct EighAttrs {
  bool upper = false;
};

EighAttrs ReadEighAttrs(AttrReader& reader) {
  return {ReadChoice<bool>(reader, "UPLO", {{"L", false}, {"U", true}})};
}

Shape ValuesShape(const Shape& matrices) {
  Shape shape = matrices;
  shape.resize(matrices.rank() - 1);
  return shape;
}

absl::Status InferEigh(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSquare(ctx, kX, "X"));
  ctx.SetShape(kValues, ValuesShape(ctx.input(kX).shape));
  ctx.SetShape(kVectors, ctx.input(kX).shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status Eigh(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor* const vectors = ctx.optional_output(kVectors);
  if (x.numel() == 0) return absl::OkStatus();
  const Matrices in = MatricesOf(x.shape);
  const int options = vectors != nullptr ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly;
  for (int64_t i = 0; i < in.count; ++i) {
    Matrix<T> matrix = MatrixAt<T>(x, in, i);
    INTERP_RETURN_IF_ERROR(CheckFinite(matrix, i));
    if (ctx.attrs<EighAttrs>().upper) matrix = Matrix<T>(matrix.adjoint());
    const Eigen::SelfAdjointEigenSolver<Matrix<T>> solver(matrix, options);
    if (solver.info() != Eigen::Success) {
      return InvalidArgument("the eigenvalues of matrix ", i, " of input 'X' do not converge");
    }
    std::copy_n(solver.eigenvalues().data(), in.rows,
                ctx.output(kValues).mutable_data<RealOf<T>>() + i * in.rows);
    if (vectors != nullptr) {
      MatrixAt<T>(*vectors, in, i) = solver.eigenvectors();
    }
  }
  return absl::OkStatus();
}

OpDef EighDef(absl::string_view type, GradientDef gradient) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}},
      .outputs = {{"Eigenvalues"}, {"Eigenvectors", kOptional}},
      .parse = ParseAttrs<EighAttrs, ReadEighAttrs>,
      .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kValues, RealDType(ctx.kernel())); },
      .infer = InferEigh,
      .kernels = {WideRow<float, Eigh<double>>(), Row<double, Eigh<double>>(),
                  WideRow<std::complex<float>, Eigh<std::complex<double>>>(),
                  Row<std::complex<double>, Eigh<std::complex<double>>>()},
      .gradient = std::move(gradient),
  };
}

INTERP_REGISTER_OP(EighDef("eigh", {.inputs = {"Eigenvalues", "Eigenvectors", "Eigenvalues@GRAD",
                                               "Eigenvectors@GRAD"},
                                    .outputs = {"X@GRAD"}}));
INTERP_REGISTER_OP(EighDef("eigvalsh", {.inputs = {"Eigenvectors", "Eigenvalues@GRAD"},
                                        .outputs = {"X@GRAD"}}));

// Of the gradients. The kernel is that of the dtype of the vectors.
constexpr int kGradVectors = 0;
constexpr int kValuesGrad = 1;
constexpr int kGradValues = 2;
constexpr int kVectorsGrad = 3;
constexpr int kXGrad = 0;

absl::Status CheckReal(const OpContext& ctx, int slot, absl::string_view name) {
  const Tensor& vectors = ctx.input(kGradVectors);
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, slot, name, ValuesShape(vectors.shape)));
  if (ctx.input(slot).dtype == RealDType(vectors.dtype)) return absl::OkStatus();
  return InvalidArgument("input '", name, "' is ", DescribeType(ctx.input(slot)), ", expected ",
                         Name(RealDType(vectors.dtype)));
}

absl::Status InferEigvalshGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSquare(ctx, kGradVectors, "Eigenvectors"));
  INTERP_RETURN_IF_ERROR(CheckReal(ctx, kValuesGrad, "Eigenvalues@GRAD"));
  ctx.ShareShape(kGradVectors, kXGrad);
  return absl::OkStatus();
}

absl::Status InferEighGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(InferEigvalshGrad(ctx));
  INTERP_RETURN_IF_ERROR(CheckReal(ctx, kGradValues, "Eigenvalues"));
  return CheckInputShape(ctx, kVectorsGrad, "Eigenvectors@GRAD", ctx.input(kGradVectors).shape);
}

// V diag(values@GRAD) V^H.
template <typename T>
absl::Status EigvalshGrad(KernelContext& ctx) {
  const Tensor& vectors = ctx.input(kGradVectors);
  const Matrices in = MatricesOf(vectors.shape);
  const RealOf<T>* const grads = ctx.input(kValuesGrad).data<RealOf<T>>();
  for (int64_t i = 0; i < in.count && in.rows > 0; ++i) {
    const Matrix<T> v = MatrixAt<T>(vectors, in, i);
    Matrix<T> inner = Matrix<T>::Zero(in.rows, in.rows);
    for (int64_t k = 0; k < in.rows; ++k) inner(k, k) = grads[i * in.rows + k];
    MatrixAt<T>(ctx.output(kXGrad), in, i) = Product<T>(Product<T>(v, inner), v.adjoint());
  }
  return absl::OkStatus();
}

// V (diag(values@GRAD) + M) V^H, where element (k, j) of M is that of half of V^H V@GRAD less its
// adjoint by w_j - w_k: the Hermitian part of the gradient.
template <typename T>
absl::Status EighGrad(KernelContext& ctx) {
  const Tensor& vectors = ctx.input(kGradVectors);
  const Matrices in = MatricesOf(vectors.shape);
  const RealOf<T>* values = ctx.input(kGradValues).data<RealOf<T>>();
  const RealOf<T>* grads = ctx.input(kValuesGrad).data<RealOf<T>>();
  for (int64_t i = 0; i < in.count && in.rows > 0; ++i, values += in.rows, grads += in.rows) {
    const Matrix<T> v = MatrixAt<T>(vectors, in, i);
    const Matrix<T> turns = Product<T>(v.adjoint(), MatrixAt<T>(ctx.input(kVectorsGrad), in, i));
    Matrix<T> inner = (turns - turns.adjoint()) / T(2);
    for (int64_t k = 0; k < in.rows; ++k) {
      for (int64_t j = 0; j < in.rows; ++j) {
        inner(k, j) = k == j ? T(grads[k]) : inner(k, j) / T(values[j] - values[k]);
      }
    }
    MatrixAt<T>(ctx.output(kXGrad), in, i) = Product<T>(Product<T>(v, inner), v.adjoint());
  }
  return absl::OkStatus();
}

OpDef EigvalshGradDef() {
  return OpDef{
      .type = "eigvalsh_grad",
      .inputs = {{"Eigenvectors"}, {"Eigenvalues@GRAD", kAnyDType}},
      .outputs = {{"X@GRAD"}},
      .parse = ParseAttrs<EighAttrs, ReadEighAttrs>,
      .infer = InferEigvalshGrad,
      .kernels = {WideRow<float, EigvalshGrad<double>>(), Row<double, EigvalshGrad<double>>(),
                  WideRow<std::complex<float>, EigvalshGrad<std::complex<double>>>(),
                  Row<std::complex<double>, EigvalshGrad<std::complex<double>>>()},
  };
}

INTERP_REGISTER_OP(EigvalshGradDef());
INTERP_REGISTER_OP(OpDef{
    .type = "eigh_grad",
    .inputs = {{"Eigenvectors"},
               {"Eigenvalues@GRAD", kAnyDType},
               {"Eigenvalues", kAnyDType},
               {"Eigenvectors@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<EighAttrs, ReadEighAttrs>,
    .infer = InferEighGrad,
    .kernels = {WideRow<float, EighGrad<double>>(), Row<double, EighGrad<double>>(),
                WideRow<std::complex<float>, EighGrad<std::complex<double>>>(),
                Row<std::complex<double>, EighGrad<std::complex<double>>>()},
});

}  // namespace
}  // namespace interp::linalg
