// kron: Out = the Kronecker product of X and Y: in every dimension of lengths a and b, index i of
// the result is index i / b of X and i % b of Y. The operand of lower rank gets dimensions of 1 in
// front. kron_grad: each element of X gets the sum over its products.
#include <complex>

#include "core/op_def.h"
#include "kernels/complex/complex_dtype.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;

Shape Padded(const Shape& shape, int rank) {
  Shape padded;
  for (int i = shape.rank(); i < rank; ++i) padded.push_back(1);
  for (const int64_t dim : shape) padded.push_back(dim);
  return padded;
}

// Both operands with the rank of the result.
struct KronShapes {
  Shape x, y, out;
};

absl::StatusOr<KronShapes> ShapesOf(const OpContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& y = ctx.input(kY).shape;
  const int rank = std::max(x.rank(), y.rank());
  KronShapes shapes = {Padded(x, rank), Padded(y, rank), {}};
  for (int i = 0; i < rank; ++i) {
    INTERP_ASSIGN_OR_RETURN(const int64_t dim, CheckedProduct(shapes.x[i], shapes.y[i]));
    shapes.out.push_back(dim);
  }
  return shapes;
}

// Calls body(index of the result, of X, of Y) for every element.
template <typename Body>
void ForEachProduct(const KronShapes& shapes, const Body& body) {
  const int rank = shapes.out.rank();
  const int64_t n = shapes.out.numel();
  for (int64_t at = 0; at < n; ++at) {
    int64_t rest = at;
    int64_t x = 0;
    int64_t y = 0;
    int64_t x_step = 1;
    int64_t y_step = 1;
    for (int i = rank - 1; i >= 0; --i) {
      const int64_t index = rest % shapes.out[i];
      rest /= shapes.out[i];
      x += index / shapes.y[i] * x_step;
      y += index % shapes.y[i] * y_step;
      x_step *= shapes.x[i];
      y_step *= shapes.y[i];
    }
    body(at, x, y);
  }
}

absl::Status InferKron(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const KronShapes shapes, ShapesOf(ctx));
  ctx.SetShape(kOut, shapes.out);
  return absl::OkStatus();
}

template <typename T>
absl::Status Kron(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const KronShapes shapes, ShapesOf(ctx));
  const T* const x = ctx.input(kX).data<T>();
  const T* const y = ctx.input(kY).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  ForEachProduct(shapes, [=](int64_t at, int64_t i, int64_t j) { out[at] = WrapMul(x[i], y[j]); });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "kron",
    .inputs = {{"X"}, {"Y"}},
    .outputs = {{"Out"}},
    .infer = InferKron,
    .kernels = {{DType::kFloat32, Kron<float>},
                {DType::kFloat64, Kron<double>},
                {DType::kInt32, Kron<int32_t>},
                {DType::kInt64, Kron<int64_t>},
                {DType::kComplex64, Kron<std::complex<float>>},
                {DType::kComplex128, Kron<std::complex<double>>}},
    .gradient = {.inputs = {"X", "Y", "Out@GRAD"}, .outputs = {"X@GRAD", "Y@GRAD"}},
});

constexpr int kOutGrad = 2;

absl::Status InferKronGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const KronShapes shapes, ShapesOf(ctx));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", shapes.out));
  ctx.ShareShape(kX, kX);
  ctx.ShareShape(kY, kY);
  return absl::OkStatus();
}

template <typename T>
absl::Status KronGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const KronShapes shapes, ShapesOf(ctx));
  const T* const x = ctx.input(kX).data<T>();
  const T* const y = ctx.input(kY).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  if (Tensor* out = ctx.optional_output(kX)) {
    FillZero(ctx.num_threads(), *out);
    T* const sums = out->mutable_data<T>();
    ForEachProduct(
        shapes, [=](int64_t at, int64_t i, int64_t j) { sums[i] += grad[at] * Conjugate(y[j]); });
  }
  if (Tensor* out = ctx.optional_output(kY)) {
    FillZero(ctx.num_threads(), *out);
    T* const sums = out->mutable_data<T>();
    ForEachProduct(
        shapes, [=](int64_t at, int64_t i, int64_t j) { sums[j] += grad[at] * Conjugate(x[i]); });
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "kron_grad",
    .inputs = {{"X"}, {"Y"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
    .infer = InferKronGrad,
    .kernels = {{DType::kFloat32, KronGrad<float>},
                {DType::kFloat64, KronGrad<double>},
                {DType::kComplex64, KronGrad<std::complex<float>>},
                {DType::kComplex128, KronGrad<std::complex<double>>}},
});

}  // namespace
}  // namespace interp
