// Rows of deformable_conv and deformable_conv_v1: samples of some images at a time in memory, and
// products of the filters and them.
#include <algorithm>

#include "kernels/conv/deformable_conv.h"
#include "kernels/cuda/batched_product.h"
#include "kernels/cuda/deformable_columns.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/pieces.h"
#include "kernels/cuda/row.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/shape_args.h"

namespace interp::cuda {
namespace {

// Without memory; of `images` images.
DeformableColumns ColumnsOf(const KernelContext& ctx, const nn::ConvProblem& problem,
                            int64_t images) {
  DeformableColumns columns = {.images = images,
                               .channels = problem.in_channels,
                               .groups = ctx.attrs<nn::DeformableAttrs>().deformable_groups,
                               .height = problem.window[0].in,
                               .width = problem.window[1].in,
                               .out_height = problem.window[0].out,
                               .out_width = problem.window[1].out};
  for (int d = 0; d < 2; ++d) {
    columns.kernel[d] = problem.window[d].kernel;
    columns.stride[d] = problem.window[d].stride;
    columns.pad[d] = problem.window[d].pad_begin;
    columns.dilation[d] = problem.window[d].dilation;
  }
  return columns;
}

// Filters [groups, group_out, depth] by columns [images, groups, depth, places].
nn::Product ProductOf(const nn::ConvProblem& problem, int64_t images, int64_t depth,
                      int64_t places) {
  nn::Product product = nn::ProductOf(problem.group_out(), places, depth);
  product.batch = {images, problem.groups};
  product.x_steps = {0, 1};
  product.y_steps = {problem.groups, 1};
  return product;
}

// Input, Offset, Filter, Mask -> Output.
absl::Status DeformableConv(KernelContext& ctx) {
  Tensor& out = ctx.output(/*slot=*/0);
  if (out.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const nn::ConvProblem problem, nn::ResolveDeformable(ctx));
  const Tensor& x = ctx.input(nn::kDeformableInput);
  const Tensor& filter = ctx.input(nn::kDeformableFilter);
  const int64_t places = problem.window[0].out * problem.window[1].out;
  const int64_t depth = filter.shape.numel(1, 4);
  const int64_t positions = problem.window[0].kernel * problem.window[1].kernel;
  INTERP_ASSIGN_OR_RETURN(const int64_t rows,
                          CheckedProduct(problem.in_channels * positions, places));
  INTERP_ASSIGN_OR_RETURN(const int64_t image_bytes,
                          CheckedProduct(rows, static_cast<int64_t>(SizeOf(x.dtype))));
  const int64_t most = PartsAtOnce(problem.batch, std::max<int64_t>(image_bytes, 1));
  INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                          ctx.workspace(static_cast<size_t>(most * image_bytes)));
  const Elements from = ElementsOf(x.dtype, x.raw_data());
  const Elements to = ElementsOf(x.dtype, out.mutable_raw_data());
  const Elements offset = ElementsOf(x.dtype, ctx.input(nn::kDeformableOffset).raw_data());
  const Elements mask = ElementsOf(x.dtype, InputOrNull(ctx, nn::kDeformableMask));
  const int64_t image_points =
      ctx.attrs<nn::DeformableAttrs>().deformable_groups * positions * places;
  for (int64_t first = 0; first < problem.batch; first += most) {
    const int64_t images = std::min(most, problem.batch - first);
    DeformableColumns columns = ColumnsOf(ctx, problem, images);
    columns.x = (from + first * x.shape.numel(1, 4)).data;
    columns.offset = (offset + first * 2 * image_points).data;
    columns.mask = (mask + first * image_points).data;
    columns.columns = memory.data();
    INTERP_RETURN_IF_ERROR(SampleColumns(x.dtype, columns, StreamOf(ctx)));
    INTERP_RETURN_IF_ERROR(RunProduct(ctx, ProductOf(problem, images, depth, places), x.dtype,
                                      x.dtype,
                                      {.x = filter.raw_data(),
                                       .y = memory.data(),
                                       .out = (to + first * out.shape.numel(1, 4)).data}));
  }
  return absl::OkStatus();
}

constexpr std::initializer_list<DType> kSampled = {DType::kFloat32, DType::kFloat64};

INTERP_REGISTER_KERNELS("deformable_conv", RowsFor(kSampled, DeformableConv));
INTERP_REGISTER_KERNELS("deformable_conv_v1", RowsFor(kSampled, DeformableConv));

}  // namespace
}  // namespace interp::cuda
