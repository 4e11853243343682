// squared_l2_distance: sub_result[i] = x - y for row i of X and row i, or the only row, of Y, and
// Out[i] the sum of its squares. (Paddle before 2.0: fluid/operators/squared_l2_distance_op.h.)
#include <algorithm>

#include "core/op_def.h"
#include "kernels/math/row_pairs.h"
#include "kernels/util/gradient_shape.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kDifference = 0;
constexpr int kOut = 1;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const RowPairs pairs,
                          ResolveRowPairs(ctx.input(kX).shape, ctx.input(kY).shape));
  ctx.SetShape(kDifference, {pairs.rows, pairs.width});
  ctx.SetShape(kOut, {pairs.rows, 1});
  ctx.output(kOut).lod = ctx.input(kX).lod;
  return absl::OkStatus();
}

template <typename T>
absl::Status Distance(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const RowPairs pairs,
                          ResolveRowPairs(ctx.input(kX).shape, ctx.input(kY).shape));
  const int64_t width = pairs.width;
  const T* const x = ctx.input(kX).data<T>();
  const T* const y = ctx.input(kY).data<T>();
  T* const difference = ctx.output(kDifference).mutable_data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  ParallelFor(ctx.num_threads(), pairs.rows, GrainFor(pairs.width),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  const T* const other = y + pairs.row_of_y(row) * width;
                  double sum = 0;
                  for (int64_t i = 0; i < width; ++i) {
                    const T value = x[row * width + i] - other[i];
                    difference[row * width + i] = value;
                    sum += static_cast<double>(value) * static_cast<double>(value);
                  }
                  out[row] = static_cast<T>(sum);
                }
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "squared_l2_distance",
    .inputs = {{"X"}, {"Y"}},
    .outputs = {{"sub_result"}, {"Out"}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, Distance<float>}, {DType::kFloat64, Distance<double>}},
    .gradient = {.inputs = {"Out@GRAD", "sub_result", "X", "Y"}, .outputs = {"X@GRAD", "Y@GRAD"}},
});

constexpr int kOutGrad = 0;
constexpr int kInDifference = 1;
constexpr int kInX = 2;
constexpr int kInY = 3;
constexpr int kXGrad = 0;
constexpr int kYGrad = 1;

absl::Status InferGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const RowPairs pairs,
                          ResolveRowPairs(ctx.input(kInX).shape, ctx.input(kInY).shape));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", {pairs.rows, int64_t{1}}));
  INTERP_RETURN_IF_ERROR(
      CheckGradientShape(ctx, kInDifference, "sub_result", {pairs.rows, pairs.width}));
  ctx.ShareShape(kInX, kXGrad);
  ctx.ShareShape(kInY, kYGrad);
  return absl::OkStatus();
}

// Adds the rows of the difference, times `scale` and their gradients, to those of an input.
template <typename T>
void AddRows(KernelContext& ctx, const RowPairs& pairs, T scale, bool one, Tensor* to_tensor) {
  if (to_tensor == nullptr) return;
  const T* const grad = ctx.input(kOutGrad).data<T>();
  const T* const difference = ctx.input(kInDifference).data<T>();
  T* const to = to_tensor->mutable_data<T>();
  const int64_t width = pairs.width;
  std::fill_n(to, to_tensor->numel(), T{0});
  const int threads = one ? 1 : ctx.num_threads();
  ParallelFor(threads, pairs.rows, GrainFor(pairs.width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* const at = one ? to : to + row * width;
      for (int64_t i = 0; i < width; ++i) at[i] += scale * grad[row] * difference[row * width + i];
    }
  });
}

template <typename T>
absl::Status DistanceGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const RowPairs pairs,
                          ResolveRowPairs(ctx.input(kInX).shape, ctx.input(kInY).shape));
  AddRows(ctx, pairs, T{2}, /*one=*/false, ctx.optional_output(kXGrad));
  AddRows(ctx, pairs, T{-2}, pairs.one_y, ctx.optional_output(kYGrad));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "squared_l2_distance_grad",
    .inputs = {{"Out@GRAD"}, {"sub_result"}, {"X", kNoNeedBuffer}, {"Y", kNoNeedBuffer}},
    .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
    .infer = InferGrad,
    .kernels = {{DType::kFloat32, DistanceGrad<float>}, {DType::kFloat64, DistanceGrad<double>}},
});

}  // namespace
}  // namespace interp
