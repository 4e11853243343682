// fused_softmax_mask: Out = softmax(X + Mask) along the last dimension, Mask [batch, 1, rows, cols]
// beside X [batch, heads, rows, cols]. fused_softmax_mask_upper_triangle: elements (i, j) with j >
// i do not count. Their gradients: X@GRAD = (Out@GRAD - sum of Out@GRAD Out) Out.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/op_def.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/lines.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kMask = 1;
constexpr int kOut = 0;

constexpr absl::string_view kDims = "[batch, heads, rows, columns]";

absl::Status InferMasked(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckRank(ctx, kX, "X", 4, 4, kDims));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kMask, "Mask", {x[0], 1, x[2], x[3]}));
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

absl::Status InferTriangle(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckRank(ctx, kX, "X", 4, 4, kDims));
  if (x[2] != x[3]) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected square matrices");
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

// The softmax of n values in place; NaN where each is minus infinity.
template <typename T>
void SoftmaxInPlace(T* values, int64_t n) {
  const T largest = *std::max_element(values, values + n);
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += values[i] = std::exp(values[i] - largest);
  for (int64_t i = 0; i < n; ++i) values[i] /= sum;
}

// Calls body(row, index of the row) for the rows of X.
template <typename Body>
void ForEachRow(const KernelContext& ctx, const Shape& x, const Body& body) {
  if (x.numel() == 0) return;
  ParallelFor(ctx.num_threads(), x.numel(0, 3), GrainFor(x[3]), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

template <typename T>
absl::Status Masked(KernelContext& ctx) {
  const Shape& shape = ctx.input(kX).shape;
  const T* const x = ctx.input(kX).data<T>();
  const T* const mask = ctx.input(kMask).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  ForEachRow(ctx, shape, [&](int64_t row) {
    const int64_t n = shape[3];
    const int64_t batch = row / (shape[1] * shape[2]);
    const T* const added = mask + (batch * shape[2] + row % shape[2]) * n;
    for (int64_t i = 0; i < n; ++i) out[row * n + i] = x[row * n + i] + added[i];
    SoftmaxInPlace(out + row * n, n);
  });
  return absl::OkStatus();
}

template <typename T>
absl::Status Triangle(KernelContext& ctx) {
  const Shape& shape = ctx.input(kX).shape;
  const T* const x = ctx.input(kX).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  ForEachRow(ctx, shape, [&](int64_t row) {
    const int64_t n = shape[3];
    const int64_t length = row % shape[2] + 1;
    std::copy_n(x + row * n, length, out + row * n);
    SoftmaxInPlace(out + row * n, length);
    std::fill(out + row * n + length, out + (row + 1) * n, T{0});
  });
  return absl::OkStatus();
}

constexpr int kSoftmax = 0;
constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

absl::Status InferGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckRank(ctx, kSoftmax, "Softmax", 4, 4, kDims));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", ctx.input(kSoftmax).shape));
  ctx.ShareShape(kSoftmax, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status Grad(KernelContext& ctx) {
  const Shape& shape = ctx.input(kSoftmax).shape;
  const T* const out = ctx.input(kSoftmax).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const x_grad = ctx.output(kXGrad).mutable_data<T>();
  ForEachRow(ctx, shape, [&](int64_t row) {
    T sum = 0;
    const int64_t end = (row + 1) * shape[3];
    for (int64_t i = row * shape[3]; i < end; ++i) sum += grad[i] * out[i];
    for (int64_t i = row * shape[3]; i < end; ++i) x_grad[i] = (grad[i] - sum) * out[i];
  });
  return absl::OkStatus();
}

OpDef GradDef(absl::string_view type, absl::string_view softmax) {
  return OpDef{
      .type = type,
      .inputs = {{softmax}, {"Out@GRAD"}},
      .outputs = {{"X@GRAD"}},
      .infer = InferGrad,
      .kernels = {{DType::kFloat32, Grad<float>}, {DType::kFloat64, Grad<double>}},
  };
}

// The gradient op calls Out Softmax.
absl::Status MakeGradient(GradientMaker& maker) {
  if (!maker.Wants("X")) return absl::OkStatus();
  Op& grad = maker.Add("fused_softmax_mask_grad");
  AddInput(grad, "Softmax", maker.Arguments("Out"));
  AddInput(grad, "Out@GRAD", maker.OutputGradients("Out"));
  AddOutput(grad, "X@GRAD", maker.InputGradients("X"));
  grad.attrs = maker.op().attrs;
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fused_softmax_mask",
    .inputs = {{"X"}, {"Mask"}},
    .outputs = {{"Out"}},
    .infer = InferMasked,
    .kernels = {{DType::kFloat32, Masked<float>}, {DType::kFloat64, Masked<double>}},
    .gradient = {.make = MakeGradient},
});
INTERP_REGISTER_OP(OpDef{
    .type = "fused_softmax_mask_upper_triangle",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .infer = InferTriangle,
    .kernels = {{DType::kFloat32, Triangle<float>}, {DType::kFloat64, Triangle<double>}},
    .gradient = {.inputs = {"Out", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});
INTERP_REGISTER_OP(GradDef("fused_softmax_mask_grad", "Softmax"));
INTERP_REGISTER_OP(GradDef("fused_softmax_mask_upper_triangle_grad", "Out"));

}  // namespace
}  // namespace interp::nn
