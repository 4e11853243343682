// cumprod: Out[i] = X[0] * ... * X[i] along `dim`.
// cumprod_grad: X@GRAD[i] = the sum over k >= i of Out@GRAD[k] * Out[k] / X[i]. Where X has a zero
// the products that leave it out are multiplied up.
#include <algorithm>
#include <complex>

#include "core/op_def.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/lines.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct CumProdAttrs {
  int64_t dim = -1;
};

CumProdAttrs ReadCumProdAttrs(AttrReader& reader) { return {reader.Long("dim", -1)}; }

absl::Status InferCumProd(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckAxis(ctx.attrs<CumProdAttrs>().dim, ctx.input(kX).shape, "X", "dim"));
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

Lines ProductLines(const CumProdAttrs& attrs, const Shape& x) { return LinesAlong(x, attrs.dim); }

template <typename T>
absl::Status CumProd(KernelContext& ctx) {
  const Lines lines = ProductLines(ctx.attrs<CumProdAttrs>(), ctx.input(kX).shape);
  const T* const x = ctx.input(kX).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  ForEachLine(lines, LineTasks(lines, ctx.num_threads()), [=](int64_t, int64_t line) {
    int64_t at = lines.Start(line);
    T product = 1;
    for (int64_t i = 0; i < lines.length; ++i, at += lines.inner) {
      product = WrapMul(product, x[at]);
      out[at] = product;
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "cumprod",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<CumProdAttrs, ReadCumProdAttrs>,
    .infer = InferCumProd,
    .kernels = {{DType::kFloat32, CumProd<float>},
                {DType::kFloat64, CumProd<double>},
                {DType::kInt32, CumProd<int32_t>},
                {DType::kInt64, CumProd<int64_t>},
                {DType::kComplex64, CumProd<std::complex<float>>},
                {DType::kComplex128, CumProd<std::complex<double>>}},
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"X", "Out", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kGradOut = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

absl::Status InferCumProdGrad(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckAxis(ctx.attrs<CumProdAttrs>().dim, x, "X", "dim"));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kGradOut, "Out", x));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", x));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

// One line, whose elements are `step` apart. Before the first zero sums of products are divided;
// at the zero the products go on from the one before it without it; behind it all products are 0.
template <typename T>
void DifferentiateLine(const T* x, const T* out, const T* grad, int64_t length, int64_t step,
                       T* x_grad) {
  int64_t zero = 0;
  while (zero < length && x[zero * step] != T{0}) ++zero;
  double sum = 0;
  for (int64_t i = zero - 1; i >= 0; --i) {
    sum += static_cast<double>(grad[i * step]) * static_cast<double>(out[i * step]);
    x_grad[i * step] = static_cast<T>(sum / static_cast<double>(x[i * step]));
  }
  for (int64_t i = zero; i < length; ++i) x_grad[i * step] = T{0};
  if (zero == length) return;
  double product = zero == 0 ? 1 : static_cast<double>(out[(zero - 1) * step]);
  sum = 0;
  for (int64_t i = zero; i < length; ++i) {
    if (i > zero) product *= static_cast<double>(x[i * step]);
    sum += product * static_cast<double>(grad[i * step]);
  }
  x_grad[zero * step] = static_cast<T>(sum);
}

template <typename T>
absl::Status CumProdGrad(KernelContext& ctx) {
  const Lines lines = ProductLines(ctx.attrs<CumProdAttrs>(), ctx.input(kX).shape);
  const T* const x = ctx.input(kX).data<T>();
  const T* const out = ctx.input(kGradOut).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const x_grad = ctx.output(kXGrad).mutable_data<T>();
  ForEachLine(lines, LineTasks(lines, ctx.num_threads()), [=](int64_t, int64_t line) {
    const int64_t at = lines.Start(line);
    DifferentiateLine(x + at, out + at, grad + at, lines.length, lines.inner, x_grad + at);
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "cumprod_grad",
    .inputs = {{"X"}, {"Out"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<CumProdAttrs, ReadCumProdAttrs>,
    .infer = InferCumProdGrad,
    .kernels = {{DType::kFloat32, CumProdGrad<float>}, {DType::kFloat64, CumProdGrad<double>}},
});

}  // namespace
}  // namespace interp
