// Rows of im2sequence and its gradient. Sizes of images lie on the host.
#include <algorithm>
#include <vector>

#include "kernels/cuda/image_windows.h"
#include "kernels/cuda/number_lists.h"
#include "kernels/cuda/row.h"
#include "kernels/tensor/image_windows.h"

namespace interp::cuda {
namespace {

// Calls function(shape) with the windows of images of shape `x` whose sizes are `y`, or null.
template <typename Function>
absl::Status WithImageWindows(const KernelContext& ctx, const Shape& x, const Tensor* y,
                              const Function& function) {
  const auto& attrs = ctx.attrs<Im2SequenceAttrs>();
  INTERP_ASSIGN_OR_RETURN(const std::vector<Grid> grids, Grids(attrs, x, y));
  std::vector<int64_t> starts = {0};
  std::vector<int64_t> columns;
  for (const Grid& grid : grids) {
    starts.push_back(starts.back() + grid.rows * grid.columns);
    columns.push_back(grid.columns);
  }
  INTERP_ASSIGN_OR_RETURN(const auto numbers, NumberLists::Make(ctx, {starts, columns}));
  ImageWindows shape = {.images = x[0],
                        .channels = x[1],
                        .height = x[2],
                        .width = x[3],
                        .rows = starts.back(),
                        .starts = numbers.list(0),
                        .columns = numbers.list(1)};
  std::copy_n(attrs.kernel, 2, shape.kernel);
  std::copy_n(attrs.stride, 2, shape.stride);
  std::copy_n(attrs.pad_before, 2, shape.pad);
  return function(shape);
}

// X, Y -> Out.
absl::Status Im2Sequence(KernelContext& ctx) {
  const Tensor& x = ctx.input(/*slot=*/0);
  Tensor& out = ctx.output(/*slot=*/0);
  if (out.numel() == 0) return absl::OkStatus();
  return WithImageWindows(
      ctx, x.shape, ctx.optional_input(/*slot=*/1), [&](const ImageWindows& shape) {
        return UnfoldImages(static_cast<int>(SizeOf(x.dtype)), shape, x.raw_data(),
                            out.mutable_raw_data(), StreamOf(ctx));
      });
}

// Out@GRAD, X, Y -> X@GRAD.
absl::Status Im2SequenceGrad(KernelContext& ctx) {
  Tensor& x_grad = ctx.output(/*slot=*/0);
  if (x_grad.numel() == 0) return absl::OkStatus();
  return WithImageWindows(
      ctx, x_grad.shape, ctx.optional_input(/*slot=*/2), [&](const ImageWindows& shape) {
        return SumImageWindows(x_grad.dtype, shape, ctx.input(/*slot=*/0).raw_data(),
                               x_grad.mutable_raw_data(), StreamOf(ctx));
      });
}

INTERP_REGISTER_KERNELS("im2sequence", RowsFor({DType::kUndefined}, Im2Sequence));
INTERP_REGISTER_KERNELS("im2sequence_grad",
                        RowsFor({DType::kFloat32, DType::kFloat64}, Im2SequenceGrad));

}  // namespace
}  // namespace interp::cuda
