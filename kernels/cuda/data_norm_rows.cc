// Rows of data_norm and data_norm_grad.
#include "kernels/cuda/data_norm.h"
#include "kernels/cuda/row.h"
#include "kernels/norm/data_norm.h"
#include "kernels/util/data_or_null.h"

namespace interp::cuda {
namespace {

DataNormShape ShapeOf(const Tensor& x, const DataNormAttrs& attrs) {
  return {.rows = x.shape[0], .width = x.shape[1], .slot_dim = attrs.slot_dim};
}

// X, BatchSize, BatchSum, BatchSquareSum, scale_w, bias -> Y, Means, Scales.
absl::Status Row(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<DataNormAttrs>();
  const Tensor& x = ctx.input(0);
  return DataNorm(x.dtype,
                  {.shape = ShapeOf(x, attrs),
                   .x = x.raw_data(),
                   .size = ctx.input(1).raw_data(),
                   .sum = ctx.input(2).raw_data(),
                   .square_sum = ctx.input(3).raw_data(),
                   .weight = attrs.scale_and_shift ? ctx.input(4).raw_data() : nullptr,
                   .bias = attrs.scale_and_shift ? ctx.input(5).raw_data() : nullptr,
                   .y = ctx.output(0).mutable_raw_data(),
                   .means = ctx.output(1).mutable_raw_data(),
                   .scales = ctx.output(2).mutable_raw_data()},
                  StreamOf(ctx));
}

// X, scale_w, bias, Scales, Means, Y@GRAD -> the gradients of X, the three sums, scale_w and bias.
absl::Status GradientRow(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<DataNormAttrs>();
  const Tensor& x = ctx.input(0);
  return DataNormGradient(x.dtype,
                          {.shape = ShapeOf(x, attrs),
                           .epsilon = attrs.epsilon,
                           .x = x.raw_data(),
                           .means = ctx.input(4).raw_data(),
                           .scales = ctx.input(3).raw_data(),
                           .weight = attrs.scale_and_shift ? ctx.input(1).raw_data() : nullptr,
                           .y_grad = ctx.input(5).raw_data(),
                           .x_grad = OutputOrNull(ctx, 0),
                           .size = OutputOrNull(ctx, 1),
                           .sum = OutputOrNull(ctx, 2),
                           .square_sum = OutputOrNull(ctx, 3),
                           .weight_grad = OutputOrNull(ctx, 4),
                           .bias_grad = OutputOrNull(ctx, 5)},
                          StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("data_norm", RowsFor({DType::kFloat32, DType::kFloat64}, Row));
INTERP_REGISTER_KERNELS("data_norm_grad", RowsFor({DType::kFloat32, DType::kFloat64}, GradientRow));

}  // namespace
}  // namespace interp::cuda
