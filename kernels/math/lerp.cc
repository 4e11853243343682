// lerp: Out = X + Weight * (Y - X), all three broadcast to one shape.
// lerp_grad: X@GRAD = (1 - Weight) * Out@GRAD, Y@GRAD = Weight * Out@GRAD, summed over what was
// broadcast.
#include <array>
#include <vector>

#include "core/op_def.h"
#include "kernels/util/broadcast.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kWeight = 2;
constexpr int kOut = 0;

absl::StatusOr<Shape> LerpShape(const InferContext& ctx, int x, int y, int weight) {
  INTERP_ASSIGN_OR_RETURN(const Shape pair,
                          BroadcastShapes(ctx.input(x).shape, ctx.input(y).shape, kTrailingAxis));
  return BroadcastShapes(pair, ctx.input(weight).shape, kTrailingAxis);
}

absl::Status InferLerp(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape, LerpShape(ctx, kX, kY, kWeight));
  ctx.SetShape(kOut, shape);
  ShareLod(ctx.input(kX), ctx.output(kOut));
  return absl::OkStatus();
}

// Calls visit(n, x, y, weight) with the offsets of the n-th element of `shape` in the operands. X
// and Y of the gradient lie in memory as it happens, and only their shapes count.
template <typename Visit>
void ForEachTriple(const Shape& shape, const std::array<const Tensor*, 3>& operands,
                   const Visit& visit) {
  std::array<Strides, 3> steps;
  for (size_t k = 0; k < 3; ++k) {
    Tensor plain;
    plain.shape = operands[k]->shape;
    steps[k] = BroadcastStrides(plain, shape.rank(), kTrailingAxis);
  }
  std::array<int64_t, kMaxRank> at = {};
  std::array<int64_t, 3> offset = {};
  const int64_t count = shape.numel();
  for (int64_t n = 0; n < count; ++n) {
    visit(n, offset[0], offset[1], offset[2]);
    for (int d = shape.rank() - 1; d >= 0; --d) {
      const bool wraps = ++at[d] == shape[d];
      for (size_t k = 0; k < 3; ++k) {
        offset[k] += steps[k][d] - (wraps ? steps[k][d] * shape[d] : 0);
      }
      if (!wraps) break;
      at[d] = 0;
    }
  }
}

template <typename T>
absl::Status Lerp(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  const T* const x = ctx.input(kX).data<T>();
  const T* const y = ctx.input(kY).data<T>();
  const T* const weight = ctx.input(kWeight).data<T>();
  T* const to = out.mutable_data<T>();
  ForEachTriple(out.shape, {&ctx.input(kX), &ctx.input(kY), &ctx.input(kWeight)},
                [=](int64_t n, int64_t i, int64_t j, int64_t k) {
                  to[n] = x[i] + weight[k] * (y[j] - x[i]);
                });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "lerp",
    .inputs = {{"X"}, {"Y"}, {"Weight"}},
    .outputs = {{"Out"}},
    .infer = InferLerp,
    .kernels = {{DType::kFloat32, Lerp<float>}, {DType::kFloat64, Lerp<double>}},
    .gradient = {.inputs = {"X", "Y", "Weight", "Out", "Out@GRAD"},
                 .outputs = {"X@GRAD", "Y@GRAD"}},
});

constexpr int kOutGrad = 4;
constexpr int kXGrad = 0;
constexpr int kYGrad = 1;

absl::Status InferLerpGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape, LerpShape(ctx, kX, kY, kWeight));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", shape));
  ctx.ShareShape(kX, kXGrad);
  ctx.ShareShape(kY, kYGrad);
  return absl::OkStatus();
}

template <typename T>
void Round(const std::vector<double>& sums, Tensor* out) {
  if (out == nullptr) return;
  T* const to = out->mutable_data<T>();
  for (size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<T>(sums[i]);
}

template <typename T>
absl::Status LerpGrad(KernelContext& ctx) {
  const Tensor& out_grad = ctx.input(kOutGrad);
  const T* const grad = out_grad.data<T>();
  const T* const weight = ctx.input(kWeight).data<T>();
  std::vector<double> x(static_cast<size_t>(ctx.input(kX).numel()), 0);
  std::vector<double> y(static_cast<size_t>(ctx.input(kY).numel()), 0);
  ForEachTriple(out_grad.shape, {&ctx.input(kX), &ctx.input(kY), &ctx.input(kWeight)},
                [&](int64_t n, int64_t i, int64_t j, int64_t k) {
                  const double part = static_cast<double>(weight[k]) * grad[n];
                  x[i] += grad[n] - part;
                  y[j] += part;
                });
  Round<T>(x, ctx.optional_output(kXGrad));
  Round<T>(y, ctx.optional_output(kYGrad));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "lerp_grad",
    .inputs = {{"X", kNoNeedBuffer},
               {"Y", kNoNeedBuffer},
               {"Weight"},
               {"Out", kOptional | kNoNeedBuffer},
               {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
    .infer = InferLerpGrad,
    .kernels = {{DType::kFloat32, LerpGrad<float>}, {DType::kFloat64, LerpGrad<double>}},
});

}  // namespace
}  // namespace interp
