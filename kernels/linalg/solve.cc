// solve: Out with X Out = Y. triangular_solve: the same where X is triangular, of which only that
// triangle is read; `transpose` solves X^T Out = Y. cholesky_solve: A Out = X, where Y is the
// factor that cholesky makes of A. Matrices in front are broadcast.
//
// Gradients, with B the right-hand side and A the matrix: B@GRAD = A^-T Out@GRAD,
// A@GRAD = -B@GRAD Out^T, summed where an operand is broadcast.
#include <Eigen/LU>

#include "kernels/linalg/matrices.h"
#include "kernels/linalg/product.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/fill_zero.h"

namespace interp::linalg {
namespace {

// How an op reads its operands.
enum class Kind : int8_t { kGeneral, kTriangular, kFactor };

struct SolveAttrs {
  Kind kind = Kind::kGeneral;
  bool upper = false;
  bool transpose = false;
  bool unit = false;  // the diagonal counts as ones
};

SolveAttrs ReadSolve(AttrReader&) { return {}; }
SolveAttrs ReadTriangular(AttrReader& reader) {
  return {Kind::kTriangular, reader.Bool("upper", true), reader.Bool("transpose", false),
          reader.Bool("unitriangular", false)};
}
SolveAttrs ReadCholeskySolve(AttrReader& reader) {
  return {Kind::kFactor, reader.Bool("upper", false), false, false};
}

// A x = b with the shapes of this run.
struct System {
  int matrix_slot = 0;
  int right_slot = 1;
  bool vector = false;  // Y is one column
  Matrices matrix, right;
  Shape right_shape;  // with a column for a vector
  BatchPairs pairs;
  Shape out;
};

absl::StatusOr<System> SystemOf(const OpContext& ctx) {
  const SolveAttrs& attrs = ctx.attrs<SolveAttrs>();
  System system;
  if (attrs.kind == Kind::kFactor) std::swap(system.matrix_slot, system.right_slot);
  const absl::string_view names[] = {"X", "Y"};
  INTERP_RETURN_IF_ERROR(CheckSquare(ctx, system.matrix_slot, names[system.matrix_slot]));
  const Shape& matrix = ctx.input(system.matrix_slot).shape;
  Shape right = ctx.input(system.right_slot).shape;
  if (attrs.kind == Kind::kGeneral) {
    Shape columns = matrix;
    columns.resize(matrix.rank() - 1);
    system.vector = right.rank() == 1 || right == columns;
    if (system.vector) right.push_back(1);
  }
  if (right.rank() < 2 || right.back(2) != matrix.back()) {
    return InvalidArgument("input '", names[system.right_slot], "' has shape ",
                           ToString(ctx.input(system.right_slot).shape), ", expected ",
                           matrix.back(), " rows, as many as '", names[system.matrix_slot],
                           "' has columns");
  }
  system.matrix = MatricesOf(matrix);
  system.right = MatricesOf(right);
  system.right_shape = right;
  INTERP_ASSIGN_OR_RETURN(system.pairs, PairBatches(BatchOf(matrix), BatchOf(right)));
  if (system.pairs.batch.rank() + 2 > kMaxRank)
    return InvalidArgument("the result has rank ", kMaxRank + 1);
  system.out = WithMatrix(system.pairs.batch, system.right.rows, system.right.cols);
  if (system.vector) system.out.resize(system.out.rank() - 1);
  return system;
}

// A^-1 b, or with `transposed` A^-T b, where A is what the attributes say of `matrix`.
template <typename T>
absl::StatusOr<Matrix<T>> Solved(const SolveAttrs& attrs, const Matrix<T>& matrix,
                                 const Matrix<T>& right, bool transposed) {
  if (attrs.kind == Kind::kGeneral) {
    const Eigen::PartialPivLU<Matrix<T>> lu(transposed ? Matrix<T>(matrix.transpose()) : matrix);
    if (!(lu.matrixLU().diagonal().cwiseAbs().minCoeff() > T{0})) {
      return InvalidArgument("a matrix of input 'X' has no inverse");
    }
    return Matrix<T>(lu.solve(right));
  }
  const auto solve = [&](bool upper, bool transpose, const Matrix<T>& b) -> Matrix<T> {
    const Matrix<T> a = transpose ? Matrix<T>(matrix.transpose()) : matrix;
    if (attrs.unit) {
      if (upper != transpose) return a.template triangularView<Eigen::UnitUpper>().solve(b);
      return a.template triangularView<Eigen::UnitLower>().solve(b);
    }
    if (upper != transpose) return a.template triangularView<Eigen::Upper>().solve(b);
    return a.template triangularView<Eigen::Lower>().solve(b);
  };
  if (attrs.kind == Kind::kTriangular) {
    return solve(attrs.upper, attrs.transpose != transposed, right);
  }
  // A is symmetric: L L^T or U^T U.
  return solve(attrs.upper, !attrs.upper, solve(attrs.upper, attrs.upper, right));
}

absl::Status InferSolve(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const System system, SystemOf(ctx));
  ctx.SetShape(0, system.out);
  return absl::OkStatus();
}

template <typename T>
absl::Status Solve(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const System system, SystemOf(ctx));
  Tensor& out = ctx.output(0);
  if (out.numel() == 0) return absl::OkStatus();
  return ForEachPair(system.pairs, [&](int64_t i, int64_t a, int64_t b) -> absl::Status {
    const Matrix<T> matrix = MatrixAt<T>(ctx.input(system.matrix_slot), system.matrix, a);
    const Matrix<T> right = MatrixAt<T>(ctx.input(system.right_slot), system.right, b);
    INTERP_ASSIGN_OR_RETURN(MatrixAt<T>(out, system.right, i),
                            Solved<T>(ctx.attrs<SolveAttrs>(), matrix, right, false));
    return absl::OkStatus();
  });
}

constexpr int kOut = 2;
constexpr int kOutGrad = 3;

absl::Status InferSolveGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const System system, SystemOf(ctx));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOut, "Out", system.out));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", system.out));
  ctx.ShareShape(0, 0);
  ctx.ShareShape(1, 1);
  return absl::OkStatus();
}

// The gradient of the matrix that the op reads from that of A.
template <typename T>
Matrix<T> MatrixGradient(const SolveAttrs& attrs, const Matrix<T>& matrix, const Matrix<T>& grad) {
  if (attrs.kind == Kind::kGeneral) return grad;
  Matrix<T> whole = attrs.transpose ? Matrix<T>(grad.transpose()) : grad;
  if (attrs.kind == Kind::kFactor) {
    const Matrix<T> sum = grad + grad.transpose();
    whole = attrs.upper ? Matrix<T>(matrix * sum) : Matrix<T>(sum * matrix);
  }
  if (attrs.unit) {
    if (attrs.upper) return whole.template triangularView<Eigen::StrictlyUpper>();
    return whole.template triangularView<Eigen::StrictlyLower>();
  }
  if (attrs.upper) return whole.template triangularView<Eigen::Upper>();
  return whole.template triangularView<Eigen::Lower>();
}

template <typename T>
absl::Status SolveGrad(KernelContext& ctx) {
  const SolveAttrs& attrs = ctx.attrs<SolveAttrs>();
  INTERP_ASSIGN_OR_RETURN(const System system, SystemOf(ctx));
  Tensor* const matrix_grad = ctx.optional_output(system.matrix_slot);
  Tensor* const right_grad = ctx.optional_output(system.right_slot);
  if (matrix_grad != nullptr) FillZero(ctx.num_threads(), *matrix_grad);
  if (right_grad != nullptr) FillZero(ctx.num_threads(), *right_grad);
  if (ctx.input(kOut).numel() == 0) return absl::OkStatus();
  return ForEachPair(system.pairs, [&](int64_t i, int64_t a, int64_t b) -> absl::Status {
    const Matrix<T> matrix = MatrixAt<T>(ctx.input(system.matrix_slot), system.matrix, a);
    const Matrix<T> out_grad = MatrixAt<T>(ctx.input(kOutGrad), system.right, i);
    INTERP_ASSIGN_OR_RETURN(const Matrix<T> grad, Solved<T>(attrs, matrix, out_grad, true));
    if (right_grad != nullptr) MatrixAt<T>(*right_grad, system.right, b) += grad;
    if (matrix_grad != nullptr) {
      const auto out = MatrixAt<T>(ctx.input(kOut), system.right, i);
      MatrixAt<T>(*matrix_grad, system.matrix, a) +=
          MatrixGradient<T>(attrs, matrix, -Product<T>(grad, out.transpose()));
    }
    return absl::OkStatus();
  });
}

using Parse = absl::StatusOr<ParsedAttrs> (*)(AttrReader&);

OpDef SolveDef(absl::string_view type, Parse parse) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}, {"Y"}},
      .outputs = {{"Out"}},
      .parse = parse,
      .infer = InferSolve,
      .kernels = {WideRow<float, Solve<double>>(), Row<double, Solve<double>>()},
      .gradient = {.inputs = {"X", "Y", "Out", "Out@GRAD"}, .outputs = {"X@GRAD", "Y@GRAD"}},
  };
}

OpDef SolveGradDef(absl::string_view type, Parse parse) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}, {"Y"}, {"Out"}, {"Out@GRAD"}},
      .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
      .parse = parse,
      .infer = InferSolveGrad,
      .kernels = {WideRow<float, SolveGrad<double>>(), Row<double, SolveGrad<double>>()},
  };
}

INTERP_REGISTER_OP(SolveDef("solve", ParseAttrs<SolveAttrs, ReadSolve>));
INTERP_REGISTER_OP(SolveGradDef("solve_grad", ParseAttrs<SolveAttrs, ReadSolve>));
INTERP_REGISTER_OP(SolveDef("triangular_solve", ParseAttrs<SolveAttrs, ReadTriangular>));
INTERP_REGISTER_OP(SolveGradDef("triangular_solve_grad", ParseAttrs<SolveAttrs, ReadTriangular>));
INTERP_REGISTER_OP(SolveDef("cholesky_solve", ParseAttrs<SolveAttrs, ReadCholeskySolve>));
INTERP_REGISTER_OP(SolveGradDef("cholesky_solve_grad", ParseAttrs<SolveAttrs, ReadCholeskySolve>));

}  // namespace
}  // namespace interp::linalg
