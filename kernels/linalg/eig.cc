// eig: the eigenvalues of square X, in no order, and eigenvectors as the columns of a matrix, both
// complex. As LAPACK's geev has them, vectors have length 1, and complex ones a largest element
// that is real; of a real matrix the value with the positive imaginary part comes before its
// conjugate. eigvals: the values alone.
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

template <typename T>
using Complex = std::complex<typename Eigen::NumTraits<T>::Real>;

template <typename T>
using Solver = std::conditional_t<kIsComplex<T>, Eigen::ComplexEigenSolver<Matrix<T>>,
                                  Eigen::EigenSolver<Matrix<T>>>;

template <bool kWithVectors>
absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSquare(ctx, kX, "X"));
  Shape values = ctx.input(kX).shape;
  values.resize(values.rank() - 1);
  ctx.SetShape(kValues, values);
  if (kWithVectors) ctx.SetShape(kVectors, ctx.input(kX).shape);
  return absl::OkStatus();
}

// Turns each complex column so that its largest element is real.
template <typename T>
void TurnColumns(const Vector<Complex<T>>& values, Matrix<Complex<T>>& vectors) {
  for (Eigen::Index column = 0; column < vectors.cols(); ++column) {
    if (!kIsComplex<T> && values[column].imag() == 0) continue;
    Eigen::Index largest = 0;
    vectors.col(column).cwiseAbs().maxCoeff(&largest);
    const Complex<T> pivot = vectors(largest, column);
    if (std::abs(pivot) == 0) continue;
    vectors.col(column) *= std::conj(pivot) / std::abs(pivot);
    vectors(largest, column) = vectors(largest, column).real();
  }
}

template <typename T, bool kWithVectors>
absl::Status Decompose(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  if (x.numel() == 0) return absl::OkStatus();
  const Matrices in = MatricesOf(x.shape);
  for (int64_t i = 0; i < in.count; ++i) {
    const Matrix<T> matrix = MatrixAt<T>(x, in, i);
    INTERP_RETURN_IF_ERROR(CheckFinite(matrix, i));
    const Solver<T> solver(matrix, kWithVectors);
    if (solver.info() != Eigen::Success) {
      return InvalidArgument("the eigenvalues of matrix ", i, " of input 'X' do not converge");
    }
    const Vector<Complex<T>>& values = solver.eigenvalues();
    std::copy_n(values.data(), in.rows,
                ctx.output(kValues).mutable_data<Complex<T>>() + i * in.rows);
    if (!kWithVectors) continue;
    Matrix<Complex<T>> vectors = solver.eigenvectors();
    TurnColumns<T>(values, vectors);
    MatrixAt<Complex<T>>(ctx.output(kVectors), in, i) = vectors;
  }
  return absl::OkStatus();
}

template <bool kWithVectors>
void InferDTypesOfComplex(DTypeContext& ctx) {
  ctx.Set(kValues, ComplexDType(ctx.kernel()));
  if (kWithVectors) ctx.Set(kVectors, ComplexDType(ctx.kernel()));
}

template <bool kWithVectors>
OpDef EigDef(absl::string_view type, const std::vector<SlotDef>& outputs,
             const GradientDef& gradient) {
  using C64 = std::complex<float>;
  using C128 = std::complex<double>;
  return OpDef{.type = type,
               .inputs = {{"X"}},
               .outputs = outputs,
               .infer_dtype = InferDTypesOfComplex<kWithVectors>,
               .infer = Infer<kWithVectors>,
               .kernels = {WideRow<float, Decompose<double, kWithVectors>>(),
                           Row<double, Decompose<double, kWithVectors>>(),
                           WideRow<C64, Decompose<C128, kWithVectors>>(),
                           Row<C128, Decompose<C128, kWithVectors>>()},
               .gradient = gradient};
}

INTERP_REGISTER_OP(EigDef<true>("eig", {{"Eigenvalues"}, {"Eigenvectors"}},
                                {.inputs = {"Eigenvalues", "Eigenvectors", "Eigenvalues@GRAD",
                                            "Eigenvectors@GRAD"},
                                 .outputs = {"X@GRAD"}}));
INTERP_REGISTER_OP(EigDef<false>("eigvals", {{"Out"}}, {}));

}  // namespace
}  // namespace interp::linalg
