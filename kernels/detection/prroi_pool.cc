// prroi_pool: the mean over each bin of a region of X, interpolated between pixels: an exact
// integral, 0 outside of the image. X [N,C,H,W], ROIs [R,4] -> Out
// [R,C,pooled_height,pooled_width]; 0 for a region without area. (Paddle before 2.6:
// fluid/operators/prroi_pool_op.h.)
#include "kernels/detection/prroi_pool.h"

#include "core/op_def.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kRois = 1;
constexpr int kRoisNum = 2;
constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) { return InferRoiPooling(ctx, ctx.attrs<PrRoiAttrs>().grid); }

// The integral over a bin.
template <typename T>
T SumOf(const PrRoiSpan<T>& rows, const PrRoiSpan<T>& columns, const T* plane, int64_t width) {
  T sum = 0;
  for (size_t j = 0; j < rows.weights.size(); ++j) {
    const T* const pixels = plane + (rows.first + static_cast<int64_t>(j)) * width + columns.first;
    T row = 0;
    for (size_t i = 0; i < columns.weights.size(); ++i) row += columns.weights[i] * pixels[i];
    sum += rows.weights[j] * row;
  }
  return sum;
}

template <typename T>
absl::Status PrRoiPool(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& rois = ctx.input(kRois);
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> images,
                          ImageOfRoi(rois, ctx.optional_input(kRoisNum), x.shape[0]));
  const RoiGrid& grid = ctx.attrs<PrRoiAttrs>().grid;
  const int64_t per_region = channels * grid.height * grid.width;
  ParallelFor(ctx.num_threads(), rois.shape[0], 1, [&](int64_t begin, int64_t end) {
    for (int64_t region = begin; region < end; ++region) {
      const PrRoiBins<T> bins(grid, rois.data<T>() + 4 * region, height, width);
      const T area = bins.area();
      const T* plane = x.data<T>() + images[region] * channels * height * width;
      T* out = ctx.output(kOut).mutable_data<T>() + region * per_region;
      for (int64_t c = 0; c < channels; ++c, plane += height * width) {
        for (const PrRoiSpan<T>& rows : bins.rows) {
          for (const PrRoiSpan<T>& columns : bins.columns) {
            *out++ = area > 0 ? SumOf(rows, columns, plane, width) / area : T{0};
          }
        }
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "prroi_pool",
    .inputs = {{"X"}, {"ROIs"}, {"BatchRoINums", kOptional | kAnyDType}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<PrRoiAttrs, ReadPrRoiAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, PrRoiPool<float>}, {DType::kFloat64, PrRoiPool<double>}},
    .gradient = {.inputs = {"X", "Out", "ROIs", "BatchRoINums", "Out@GRAD"},
                 .outputs = {"X@GRAD", "ROIs@GRAD"}},
});

}  // namespace
}  // namespace interp
