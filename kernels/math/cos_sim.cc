// cos_sim: Out[i] = x y / (|x| |y|) for row i of X and row i, or the only row, of Y. XNorm and
// YNorm are the norms of the rows. (Paddle before 2.3: fluid/operators/cos_sim_op.h.)
#include <algorithm>
#include <cmath>

#include "core/op_def.h"
#include "kernels/math/row_pairs.h"
#include "kernels/util/gradient_shape.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;
constexpr int kXNorm = 1;
constexpr int kYNorm = 2;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const RowPairs pairs,
                          ResolveRowPairs(ctx.input(kX).shape, ctx.input(kY).shape));
  ctx.SetShape(kOut, {pairs.rows, 1});
  ctx.output(kOut).lod = ctx.input(kX).lod;
  ctx.SetShape(kXNorm, {pairs.rows, 1});
  ctx.SetShape(kYNorm, {ctx.input(kY).shape[0], 1});
  return absl::OkStatus();
}

template <typename T>
double Dot(const T* a, const T* b, int64_t width) {
  double sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

template <typename T>
absl::Status CosSim(KernelContext& ctx) {
  const Tensor& y_tensor = ctx.input(kY);
  INTERP_ASSIGN_OR_RETURN(const RowPairs pairs,
                          ResolveRowPairs(ctx.input(kX).shape, y_tensor.shape));
  const T* const x = ctx.input(kX).data<T>();
  const T* const y = y_tensor.data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  T* const x_norm = ctx.output(kXNorm).mutable_data<T>();
  T* const y_norm = ctx.output(kYNorm).mutable_data<T>();
  const int64_t width = pairs.width;
  ParallelFor(ctx.num_threads(), y_tensor.shape[0], GrainFor(pairs.width),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const T* const row = y + i * width;
                  y_norm[i] = static_cast<T>(std::sqrt(Dot(row, row, width)));
                }
              });
  ParallelFor(
      ctx.num_threads(), pairs.rows, GrainFor(pairs.width), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* const row = x + i * width;
          const int64_t other = pairs.row_of_y(i);
          x_norm[i] = static_cast<T>(std::sqrt(Dot(row, row, width)));
          out[i] = static_cast<T>(Dot(row, y + other * width, width) / x_norm[i] / y_norm[other]);
        }
      });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "cos_sim",
    .inputs = {{"X"}, {"Y"}},
    .outputs = {{"Out"}, {"XNorm"}, {"YNorm"}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, CosSim<float>}, {DType::kFloat64, CosSim<double>}},
    .gradient = {.inputs = {"X", "Y", "XNorm", "YNorm", "Out", "Out@GRAD"},
                 .outputs = {"X@GRAD", "Y@GRAD"}},
});

constexpr int kInXNorm = 2;
constexpr int kInYNorm = 3;
constexpr int kInOut = 4;
constexpr int kOutGrad = 5;
constexpr int kXGrad = 0;
constexpr int kYGrad = 1;

absl::Status InferGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const RowPairs pairs,
                          ResolveRowPairs(ctx.input(kX).shape, ctx.input(kY).shape));
  const Shape column = {pairs.rows, 1};
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kInXNorm, "XNorm", column));
  INTERP_RETURN_IF_ERROR(
      CheckGradientShape(ctx, kInYNorm, "YNorm", {ctx.input(kY).shape[0], int64_t{1}}));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kInOut, "Out", column));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", column));
  ctx.ShareShape(kX, kXGrad);
  ctx.ShareShape(kY, kYGrad);
  return absl::OkStatus();
}

// A row, and its norm.
template <typename T>
struct Row {
  const T* values;
  T norm;
};

// Adds grad d(a b / |a| |b|) / da, where the cosine is `out`.
template <typename T>
void AddGradient(const Row<T>& a, const Row<T>& b, T out, T grad, int64_t width, T* to) {
  const T of_b = grad / (a.norm * b.norm);
  const T of_a = grad * out / (a.norm * a.norm);
  for (int64_t i = 0; i < width; ++i) to[i] += of_b * b.values[i] - of_a * a.values[i];
}

// The gradient of the only row of Y is a sum over the rows of X, in their order.
template <typename T>
absl::Status CosSimGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const RowPairs pairs,
                          ResolveRowPairs(ctx.input(kX).shape, ctx.input(kY).shape));
  const int64_t width = pairs.width;
  const T* const out = ctx.input(kInOut).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  const auto x = [&ctx, width](int64_t i) {
    return Row<T>{ctx.input(kX).data<T>() + i * width, ctx.input(kInXNorm).data<T>()[i]};
  };
  const auto y = [&ctx, width](int64_t i) {
    return Row<T>{ctx.input(kY).data<T>() + i * width, ctx.input(kInYNorm).data<T>()[i]};
  };
  const int threads = ctx.num_threads();
  if (Tensor* const x_grad = ctx.optional_output(kXGrad)) {
    T* const to = x_grad->mutable_data<T>();
    std::fill_n(to, x_grad->numel(), T{0});
    ParallelFor(threads, pairs.rows, GrainFor(pairs.width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        AddGradient(x(i), y(pairs.row_of_y(i)), out[i], grad[i], width, to + i * width);
      }
    });
  }
  if (Tensor* const y_grad = ctx.optional_output(kYGrad)) {
    T* const to = y_grad->mutable_data<T>();
    std::fill_n(to, y_grad->numel(), T{0});
    ParallelFor(pairs.one_y ? 1 : threads, pairs.rows, GrainFor(pairs.width),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t row = pairs.row_of_y(i);
                    AddGradient(y(row), x(i), out[i], grad[i], width, to + row * width);
                  }
                });
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "cos_sim_grad",
    .inputs = {{"X"}, {"Y"}, {"XNorm"}, {"YNorm"}, {"Out"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
    .infer = InferGrad,
    .kernels = {{DType::kFloat32, CosSimGrad<float>}, {DType::kFloat64, CosSimGrad<double>}},
});

}  // namespace
}  // namespace interp
