// roi_align: mean of bilinear samples in each bin of a region of interest.
// X [N,C,H,W], ROIs [R,4] -> Out [R,C,pooled_height,pooled_width].
//
// A bin has sampling_ratio x sampling_ratio samples, or as many as pixels when that is not
// positive. Sample rows and columns are the same for all channels, so positions and weights are
// made once per region and axis.
#include "kernels/detection/roi_align.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/op_def.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kRois = 1;
constexpr int kRoisNum = 2;
constexpr int kOut = 0;

constexpr int64_t kGrain = 2048;  // bins per task, a few samples each

absl::Status Infer(InferContext& ctx) {
  return InferRoiPooling(ctx, ctx.attrs<RoiAlignAttrs>().grid);
}

// The mean over one bin; NaN for a bin without samples, as in Paddle.
template <typename T>
T PoolBin(const T* plane, int64_t width, const RoiSample<T>* rows, int64_t num_rows,
          const RoiSample<T>* columns, int64_t num_columns) {
  const int64_t count = num_rows * num_columns;
  if (count == 0) return std::numeric_limits<T>::quiet_NaN();
  T sum = 0;
  for (int64_t i = 0; i < num_rows; ++i) {
    const RoiSample<T>& y = rows[i];
    if (!y.inside) continue;
    const T* low = plane + y.low * width;
    const T* high = plane + y.high * width;
    for (int64_t j = 0; j < num_columns; ++j) {
      const RoiSample<T>& x = columns[j];
      if (!x.inside) continue;
      sum += x.low_weight * y.low_weight * low[x.low] + x.high_weight * y.low_weight * low[x.high] +
             x.low_weight * y.high_weight * high[x.low] +
             x.high_weight * y.high_weight * high[x.high];
    }
  }
  return sum * static_cast<T>(1.0 / static_cast<double>(count));
}

template <typename T>
absl::Status AlignRegion(const RoiAlignAttrs& attrs, const T* box, const Tensor& x, int64_t image,
                         RegionSamples<T>& samples, T* out) {
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  const T least = attrs.aligned ? -std::numeric_limits<T>::infinity() : T{1};
  INTERP_RETURN_IF_ERROR(samples.Place(attrs, box, least, height, width));
  const AxisSamples<T>& rows = samples.rows;
  const AxisSamples<T>& columns = samples.columns;
  const T* plane = x.data<T>() + image * channels * height * width;
  for (int64_t c = 0; c < channels; ++c, plane += height * width) {
    for (int64_t h = 0; h < attrs.grid.height; ++h) {
      for (int64_t w = 0; w < attrs.grid.width; ++w) {
        *out++ = PoolBin(plane, width, rows.samples.data() + h * rows.per_bin, rows.per_bin,
                         columns.samples.data() + w * columns.per_bin, columns.per_bin);
      }
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status RoiAlign(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& rois = ctx.input(kRois);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> images,
                          ImageOfRoi(rois, ctx.optional_input(kRoisNum), x.shape[0]));
  const RoiAlignAttrs& attrs = ctx.attrs<RoiAlignAttrs>();
  const int64_t num_rois = rois.shape[0];
  const int64_t roi_size = x.shape[1] * attrs.grid.height * attrs.grid.width;
  if (num_rois > 0 && (x.shape[2] == 0 || x.shape[3] == 0)) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape), ", an empty image");
  }
  std::vector<absl::Status> statuses(num_rois);
  T* out = ctx.output(kOut).mutable_data<T>();
  ParallelFor(
      ctx.num_threads(), num_rois, GrainFor(roi_size, kGrain), [&](int64_t begin, int64_t end) {
        RegionSamples<T> samples;
        for (int64_t r = begin; r < end; ++r) {
          statuses[r] =
              AlignRegion(attrs, rois.data<T>() + r * 4, x, images[r], samples, out + r * roi_size);
        }
      });
  for (const absl::Status& status : statuses) INTERP_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "roi_align",
    .inputs = {{"X"}, {"ROIs"}, {"RoisNum", kOptional | kAnyDType}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<RoiAlignAttrs, ReadRoiAlignAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, RoiAlign<float>}, {DType::kFloat64, RoiAlign<double>}},
    .gradient = {.inputs = {"X", "ROIs", "RoisNum", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
