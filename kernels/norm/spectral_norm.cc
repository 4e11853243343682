// spectral_norm: Out = Weight / sigma, where sigma = u^T W v is near the largest singular value of
// W, Weight as a matrix whose rows are dimension `dim`. u and v start as U and V; `power_iters`
// times v = W^T u and u = W v, each divided by its norm. spectral_norm_grad: Weight@GRAD =
// (Out@GRAD - sum(Out@GRAD Weight) / sigma u v^T) / sigma.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op_def.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/shape_args.h"

namespace interp::nn {
namespace {

constexpr int kWeight = 0;
constexpr int kU = 1;
constexpr int kV = 2;
constexpr int kOut = 0;

struct SpectralAttrs {
  int64_t dim = 0;
  int64_t power_iters = 1;
  float eps = 1e-12f;
};

SpectralAttrs ReadSpectralAttrs(AttrReader& reader) {
  const SpectralAttrs attrs = {reader.Int("dim", 0), reader.Int("power_iters", 1),
                               reader.Float("eps", 1e-12f)};
  if (attrs.dim != 0 && attrs.dim != 1) {
    reader.Fail(absl::StrCat("attribute 'dim' is ", attrs.dim, ", expected 0 or 1"));
  }
  if (attrs.power_iters < 0 || attrs.power_iters > 1000) {
    reader.Fail(
        absl::StrCat("attribute 'power_iters' is ", attrs.power_iters, ", expected 0 to 1000"));
  }
  return attrs;
}

// Element (i, j) of the matrix lies at i * row + j / inner * outer + j % inner.
struct WeightMatrix {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_step = 0;
  int64_t inner = 1;
  int64_t outer_step = 0;

  int64_t At(int64_t i, int64_t j) const {
    return i * row_step + j / inner * outer_step + j % inner;
  }
};

absl::StatusOr<WeightMatrix> MatrixOf(const OpContext& ctx) {
  const int dim = static_cast<int>(ctx.attrs<SpectralAttrs>().dim);
  const Shape& shape = ctx.input(kWeight).shape;
  if (shape.rank() < 2 || shape.numel() == 0) {
    return InvalidArgument("input 'Weight' has shape ", ToString(shape),
                           ", expected rank 2 or more, and elements");
  }
  WeightMatrix matrix;
  matrix.rows = shape[dim];
  matrix.cols = shape.numel() / matrix.rows;
  matrix.row_step = matrix.inner = shape.numel(dim + 1, shape.rank());
  matrix.outer_step = matrix.inner * shape[dim];
  if (ctx.input(kU).numel() != matrix.rows || ctx.input(kV).numel() != matrix.cols) {
    return InvalidArgument("'U' and 'V' have shapes ", ToString(ctx.input(kU).shape), " and ",
                           ToString(ctx.input(kV).shape), ", expected [", matrix.rows, "] and [",
                           matrix.cols, "]");
  }
  return matrix;
}

template <typename T>
struct Singular {
  std::vector<T> u, v;
  T sigma = 0;
};

template <typename T>
void Normalize(std::vector<T>& values, T eps) {
  T square = 0;
  for (const T value : values) square += value * value;
  const T norm = std::sqrt(square) + eps;
  for (T& value : values) value /= norm;
}

template <typename T>
Singular<T> Iterate(const KernelContext& ctx, const WeightMatrix& m) {
  const SpectralAttrs& attrs = ctx.attrs<SpectralAttrs>();
  const T* const w = ctx.input(kWeight).data<T>();
  const T* const u = ctx.input(kU).data<T>();
  const T* const v = ctx.input(kV).data<T>();
  Singular<T> s = {{u, u + m.rows}, {v, v + m.cols}};
  const T eps = attrs.eps;
  std::vector<T> product(static_cast<size_t>(m.rows));
  const auto multiply = [&] {  // product = W v
    for (int64_t i = 0; i < m.rows; ++i) {
      T sum = 0;
      for (int64_t j = 0; j < m.cols; ++j) sum += w[m.At(i, j)] * s.v[j];
      product[i] = sum;
    }
  };
  for (int64_t n = 0; n < attrs.power_iters; ++n) {
    std::fill(s.v.begin(), s.v.end(), T{0});
    for (int64_t i = 0; i < m.rows; ++i) {
      for (int64_t j = 0; j < m.cols; ++j) s.v[j] += w[m.At(i, j)] * s.u[i];
    }
    Normalize(s.v, eps);
    multiply();
    s.u = product;
    Normalize(s.u, eps);
  }
  multiply();
  for (int64_t i = 0; i < m.rows; ++i) s.sigma += s.u[i] * product[i];
  return s;
}

absl::Status InferSpectral(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(MatrixOf(ctx).status());
  ctx.ShareShape(kWeight, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status SpectralNorm(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const WeightMatrix matrix, MatrixOf(ctx));
  const Singular<T> s = Iterate<T>(ctx, matrix);
  const T* const weight = ctx.input(kWeight).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  for (int64_t i = 0; i < ctx.output(kOut).numel(); ++i) out[i] = weight[i] / s.sigma;
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "spectral_norm",
    .inputs = {{"Weight"}, {"U"}, {"V"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SpectralAttrs, ReadSpectralAttrs>,
    .infer = InferSpectral,
    .kernels = {{DType::kFloat32, SpectralNorm<float>}, {DType::kFloat64, SpectralNorm<double>}},
    .gradient = {.inputs = {"Weight", "U", "V", "Out@GRAD"}, .outputs = {"Weight@GRAD"}},
});

constexpr int kOutGrad = 3;
constexpr int kWeightGrad = 0;

absl::Status InferSpectralGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(MatrixOf(ctx).status());
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", ctx.input(kWeight).shape));
  ctx.ShareShape(kWeight, kWeightGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status SpectralNormGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const WeightMatrix m, MatrixOf(ctx));
  const Singular<T> s = Iterate<T>(ctx, m);
  const T* const weight = ctx.input(kWeight).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const out = ctx.output(kWeightGrad).mutable_data<T>();
  T sum = 0;
  for (int64_t i = 0; i < m.rows * m.cols; ++i) sum += grad[i] * weight[i];
  const T factor = sum / s.sigma;
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < m.cols; ++j) {
      const int64_t at = m.At(i, j);
      out[at] = (grad[at] - factor * s.u[i] * s.v[j]) / s.sigma;
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "spectral_norm_grad",
    .inputs = {{"Weight"}, {"U"}, {"V"}, {"Out@GRAD"}},
    .outputs = {{"Weight@GRAD"}},
    .parse = ParseAttrs<SpectralAttrs, ReadSpectralAttrs>,
    .infer = InferSpectralGrad,
    .kernels = {{DType::kFloat32, SpectralNormGrad<float>},
                {DType::kFloat64, SpectralNormGrad<double>}},
});

}  // namespace
}  // namespace interp::nn
