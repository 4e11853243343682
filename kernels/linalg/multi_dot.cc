// multi_dot: the product of all arguments of X, from left to right; the first and the last one may
// be vectors, a row and a column. multi_dot_grad: X[i]@GRAD = L^T Out@GRAD R^T, where L and R are
// the products of those before and behind.
#include <vector>

#include "kernels/linalg/matrices.h"
#include "kernels/linalg/product.h"
#include "kernels/util/all_present.h"
#include "kernels/util/check_shape.h"

namespace interp::linalg {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

// The arguments as matrices, and the shape of the product.
struct Chain {
  std::vector<Matrices> matrices;
  Shape out;
};

absl::StatusOr<Chain> ChainOf(const OpContext& ctx) {
  const absl::Span<const Tensor* const> xs = ctx.inputs(kX);
  INTERP_RETURN_IF_ERROR(CheckAllPresent(xs, "X"));
  if (xs.size() < 2)
    return InvalidArgument("'X' has ", xs.size(), " arguments, expected 2 or more");
  Chain chain;
  for (size_t i = 0; i < xs.size(); ++i) {
    const Shape& shape = xs[i]->shape;
    const bool row = shape.rank() == 1 && i == 0;
    const bool column = shape.rank() == 1 && i == xs.size() - 1;
    if (shape.rank() != 2 && !row && !column) {
      return InvalidArgument("'X' argument ", i, " has shape ", ToString(shape),
                             ", expected a matrix; the first and the last may be vectors");
    }
    const Matrices m = row      ? Matrices{1, 1, shape[0]}
                       : column ? Matrices{1, shape[0], 1}
                                : Matrices{1, shape[0], shape[1]};
    if (i > 0 && chain.matrices.back().cols != m.rows) {
      return InvalidArgument("'X' argument ", i, " has ", m.rows, " rows, expected ",
                             chain.matrices.back().cols, ", the columns of the one before");
    }
    chain.matrices.push_back(m);
  }
  if (xs.front()->shape.rank() == 2) chain.out.push_back(chain.matrices.front().rows);
  if (xs.back()->shape.rank() == 2) chain.out.push_back(chain.matrices.back().cols);
  return chain;
}

absl::Status InferMultiDot(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Chain chain, ChainOf(ctx));
  ctx.SetShape(kOut, chain.out);
  return absl::OkStatus();
}

template <typename T>
absl::Status MultiDot(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Chain chain, ChainOf(ctx));
  const absl::Span<const Tensor* const> xs = ctx.inputs(kX);
  Matrix<T> product = MatrixAt<T>(*xs[0], chain.matrices[0], 0);
  for (size_t i = 1; i < xs.size(); ++i) {
    product = Product<T>(product, MatrixAt<T>(*xs[i], chain.matrices[i], 0));
  }
  const Matrices out = {1, chain.matrices.front().rows, chain.matrices.back().cols};
  MatrixAt<T>(ctx.output(kOut), out, 0) = product;
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "multi_dot",
    .inputs = {{"X", kVariadic}},
    .outputs = {{"Out"}},
    .infer = InferMultiDot,
    .kernels = {Row<float, MultiDot<float>>(), Row<double, MultiDot<double>>()},
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

absl::Status InferMultiDotGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Chain chain, ChainOf(ctx));
  const Shape& grad = ctx.input(kOutGrad).shape;
  const bool scalars = grad.numel() == 1 && chain.out.numel() == 1;
  if (!scalars) INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", chain.out));
  const absl::Span<Tensor* const> outs = ctx.outputs(kXGrad);
  if (outs.size() != ctx.inputs(kX).size()) {
    return InvalidArgument("'X@GRAD' has ", outs.size(), " arguments, expected ",
                           ctx.inputs(kX).size(), ", as many as 'X'");
  }
  for (size_t i = 0; i < outs.size(); ++i) {
    if (outs[i] != nullptr) outs[i]->shape = ctx.inputs(kX)[i]->shape;
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status MultiDotGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Chain chain, ChainOf(ctx));
  const absl::Span<const Tensor* const> xs = ctx.inputs(kX);
  const size_t n = xs.size();
  // right[i]: Out@GRAD times the transposes of all behind i.
  std::vector<Matrix<T>> right(n);
  const Matrices out = {1, chain.matrices.front().rows, chain.matrices.back().cols};
  right[n - 1] = MatrixAt<T>(ctx.input(kOutGrad), out, 0);
  for (size_t i = n - 1; i > 0; --i) {
    right[i - 1] = Product<T>(right[i], MatrixAt<T>(*xs[i], chain.matrices[i], 0).transpose());
  }
  Matrix<T> left;
  for (size_t i = 0; i < n; ++i) {
    if (Tensor* grad = ctx.outputs(kXGrad)[i]) {
      MatrixAt<T>(*grad, chain.matrices[i], 0) =
          i == 0 ? right[0] : Product<T>(left.transpose(), right[i]);
    }
    const Matrix<T> own = MatrixAt<T>(*xs[i], chain.matrices[i], 0);
    left = i == 0 ? own : Product<T>(left, own);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "multi_dot_grad",
    .inputs = {{"X", kVariadic}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kVariadic}},
    .infer = InferMultiDotGrad,
    .kernels = {Row<float, MultiDotGrad<float>>(), Row<double, MultiDotGrad<double>>()},
});

}  // namespace
}  // namespace interp::linalg
