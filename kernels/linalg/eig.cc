// eig: the eigenvalues of square matrices X, and eigenvectors as the columns of a matrix: of length
// 1, their largest component real and positive. Both are complex, whatever X is. eigvals: the
// eigenvalues alone.
#include <Eigen/Eigenvalues>
#include <complex>

#include "kernels/complex/complex_dtype.h"
#include "kernels/linalg/finite.h"
#include "kernels/linalg/matrices.h"

namespace interp::linalg {
namespace {

constexpr int kX = 0;
constexpr int kValues = 0;
constexpr int kVectors = 1;

using Complex = std::complex<double>;

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSquare(ctx, kX, "X"));
  Shape values = BatchOf(ctx.input(kX).shape);
  values.push_back(ctx.input(kX).shape.back());
  ctx.SetShape(kValues, values);
  return absl::OkStatus();
}

absl::Status InferWithVectors(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(Infer(ctx));
  ctx.SetShape(kVectors, ctx.input(kX).shape);
  return absl::OkStatus();
}

struct Decomposition {
  Vector<Complex> values;
  Matrix<Complex> vectors;
};

void Normalise(Matrix<Complex>& vectors) {
  for (int64_t column = 0; column < vectors.cols(); ++column) {
    auto vector = vectors.col(column);
    int64_t largest = 0;
    vector.cwiseAbs().maxCoeff(&largest);
    const Complex scale = std::conj(vector[largest]) / std::abs(vector[largest]) / vector.norm();
    vector *= scale;
    vector[largest] = vector[largest].real();
  }
}

// In double: solvers for each dtype take long to compile.
template <typename Solver, typename M>
absl::StatusOr<Decomposition> Solve(const M& matrix, int64_t index, bool with_vectors) {
  INTERP_RETURN_IF_ERROR(CheckFinite(matrix, index));
  const Solver solver(matrix, with_vectors);
  if (solver.info() != Eigen::Success) {
    return InvalidArgument("the eigenvalues of matrix ", index, " of input 'X' do not converge");
  }
  Decomposition result = {solver.eigenvalues(), {}};
  if (with_vectors) {
    result.vectors = solver.eigenvectors();
    Normalise(result.vectors);
  }
  return result;
}

template <typename T>
absl::StatusOr<Decomposition> Decompose(const ConstMatrixMap<T>& matrix, int64_t index,
                                        bool with_vectors) {
  if constexpr (kIsComplex<T>) {
    const Matrix<Complex> wide = matrix.template cast<Complex>();
    return Solve<Eigen::ComplexEigenSolver<Matrix<Complex>>>(wide, index, with_vectors);
  } else {
    const Matrix<double> wide = matrix.template cast<double>();
    return Solve<Eigen::EigenSolver<Matrix<double>>>(wide, index, with_vectors);
  }
}

// R: of the parts of X.
template <typename T, typename R, bool kWithVectors>
absl::Status Eig(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  if (x.numel() == 0) return absl::OkStatus();
  const Matrices in = MatricesOf(x.shape);
  for (int64_t i = 0; i < in.count; ++i) {
    INTERP_ASSIGN_OR_RETURN(const Decomposition result,
                            Decompose<T>(MatrixAt<T>(x, in, i), i, kWithVectors));
    std::complex<R>* const values =
        ctx.output(kValues).mutable_data<std::complex<R>>() + i * in.rows;
    for (int64_t k = 0; k < in.rows; ++k) values[k] = std::complex<R>(result.values[k]);
    if constexpr (kWithVectors) {
      MatrixAt<std::complex<R>>(ctx.output(kVectors), in, i) =
          result.vectors.template cast<std::complex<R>>();
    }
  }
  return absl::OkStatus();
}

template <bool kWithVectors>
std::vector<KernelDef> Rows() {
  return {Row<float, Eig<float, float, kWithVectors>>(),
          Row<double, Eig<double, double, kWithVectors>>(),
          Row<std::complex<float>, Eig<std::complex<float>, float, kWithVectors>>(),
          Row<std::complex<double>, Eig<std::complex<double>, double, kWithVectors>>()};
}

INTERP_REGISTER_OP(OpDef{
    .type = "eig",
    .inputs = {{"X"}},
    .outputs = {{"Eigenvalues"}, {"Eigenvectors"}},
    .infer_dtype =
        [](DTypeContext& ctx) {
          ctx.Set(kValues, ComplexDType(ctx.kernel()));
          ctx.Set(kVectors, ComplexDType(ctx.kernel()));
        },
    .infer = InferWithVectors,
    .kernels = Rows<true>(),
});

INTERP_REGISTER_OP(OpDef{
    .type = "eigvals",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kValues, ComplexDType(ctx.kernel())); },
    .infer = Infer,
    .kernels = Rows<false>(),
});

}  // namespace
}  // namespace interp::linalg
