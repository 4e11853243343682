// The row of grid_sampler.
#include <algorithm>

#include "kernels/cuda/grid_sample.h"
#include "kernels/cuda/row.h"
#include "kernels/detection/grid_sampler.h"

namespace interp::cuda {
namespace {

// X, Grid -> Output.
absl::Status GridSampler(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<GridAttrs>();
  const Tensor& x = ctx.input(/*slot=*/0);
  const Tensor& grid = ctx.input(/*slot=*/1);
  GridSample sample = {.axes = x.shape.rank() - 2,
                       .images = x.shape[0],
                       .channels = x.shape[1],
                       .points = grid.shape.numel(1, grid.shape.rank() - 1),
                       .nearest = attrs.nearest,
                       .align_corners = attrs.align_corners,
                       .padding = static_cast<SamplePadding>(attrs.padding),
                       .x = x.raw_data(),
                       .grid = grid.raw_data(),
                       .out = ctx.output(/*slot=*/0).mutable_raw_data()};
  std::copy_n(x.shape.begin() + 2, sample.axes, sample.size);
  return SampleGrid(x.dtype, sample, StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("grid_sampler", RowsFor({DType::kFloat32, DType::kFloat64}, GridSampler));

}  // namespace
}  // namespace interp::cuda
