// matmul_v2 of complex numbers, and its gradients, with A = op(X) and B = op(Y):
//   A@GRAD = Out@GRAD B^H,   B@GRAD = A^H Out@GRAD
// transposed where X or Y is, and summed over the matrices that one of X or Y has served.
#include "kernels/product/matmul.h"

#include <complex>

#include "core/op_def.h"
#include "kernels/complex/promotion.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/loops.h"
#include "kernels/util/zeroed_output.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;

// Matrices that one product reads: the elements of op(X) are x[i * row + k * col].
struct Steps {
  int64_t row = 0;
  int64_t col = 0;
};

Steps StepsOf(bool transposed, int64_t rows, int64_t cols) {
  return transposed ? Steps{1, rows} : Steps{cols, 1};
}

// Calls body(matrix of the result, of X, of Y) for each product.
template <typename Body>
void ForEachProduct(const Product& product, const Body& body) {
  if (product.count() == 0) return;
  LoopNest nest;
  for (int i = 0; i < product.batch.rank(); ++i) {
    nest.Add({product.batch[i], product.x_steps[i], product.y_steps[i]});
  }
  LoopCursor cursor(nest);
  for (int64_t i = 0; i < product.count(); ++i, cursor.Next()) body(i, cursor.x(), cursor.y());
}

absl::StatusOr<ResolvedProduct> Resolve(const OpContext& ctx) {
  return ResolveMatmul(ctx.attrs<MatmulAttrs>(), ctx.input(kX).shape, ctx.input(kY).shape);
}

template <typename T>
absl::Status Matmul(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const ResolvedProduct resolved, Resolve(ctx));
  const Product& p = resolved.product;
  const T* const x = ctx.input(kX).data<T>();
  const T* const y = ctx.input(kY).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  const Steps xs = StepsOf(p.trans_x, p.m, p.k);
  const Steps ys = StepsOf(p.trans_y, p.k, p.n);
  FillZero(ctx.num_threads(), ctx.output(kOut));
  ForEachProduct(p, [&](int64_t at, int64_t x_at, int64_t y_at) {
    const T* const a = x + x_at * p.m * p.k;
    const T* const b = y + y_at * p.k * p.n;
    for (int64_t i = 0; i < p.m; ++i) {
      T* const row = out + (at * p.m + i) * p.n;
      for (int64_t k = 0; k < p.k; ++k) {
        const T factor = a[i * xs.row + k * xs.col];
        for (int64_t j = 0; j < p.n; ++j) row[j] += factor * b[k * ys.row + j * ys.col];
      }
    }
  });
  return absl::OkStatus();
}

constexpr int kOutGrad = 2;

template <typename T>
absl::Status MatmulGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const ResolvedProduct resolved, Resolve(ctx));
  const Product& p = resolved.product;
  const T* const x = ctx.input(kX).data<T>();
  const T* const y = ctx.input(kY).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const x_grad = ZeroedOutput<T>(ctx, kX);
  T* const y_grad = ZeroedOutput<T>(ctx, kY);
  const Steps xs = StepsOf(p.trans_x, p.m, p.k);
  const Steps ys = StepsOf(p.trans_y, p.k, p.n);
  ForEachProduct(p, [&](int64_t at, int64_t x_at, int64_t y_at) {
    const int64_t a = x_at * p.m * p.k;
    const int64_t b = y_at * p.k * p.n;
    for (int64_t i = 0; i < p.m; ++i) {
      const T* const row = grad + (at * p.m + i) * p.n;
      for (int64_t k = 0; k < p.k; ++k) {
        const int64_t left = a + i * xs.row + k * xs.col;
        for (int64_t j = 0; j < p.n; ++j) {
          const int64_t right = b + k * ys.row + j * ys.col;
          if (x_grad != nullptr) x_grad[left] += row[j] * std::conj(y[right]);
          if (y_grad != nullptr) y_grad[right] += std::conj(x[left]) * row[j];
        }
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_KERNELS("matmul_v2", {{DType::kComplex64, Matmul<std::complex<float>>},
                                      {DType::kComplex128, Matmul<std::complex<double>>}});
INTERP_REGISTER_KERNELS(
    "matmul_v2_grad",
    {{DType::kComplex64, WithRealGradients<float, MatmulGrad<std::complex<float>>>},
     {DType::kComplex128, WithRealGradients<double, MatmulGrad<std::complex<double>>>}});

}  // namespace
}  // namespace interp::nn
