// roi_align: mean of bilinear samples in each bin of a region of interest.
// X [N,C,H,W], ROIs [R,4] -> Out [R,C,pooled_height,pooled_width].
//
// A bin has sampling_ratio x sampling_ratio samples, or as many as pixels when that is not
// positive. Sample rows and columns are the same for all channels, so positions and weights are
// made once per region and axis.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/roi.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kRois = 1;
constexpr int kRoisNum = 2;
constexpr int kOut = 0;

// Samples per bin and axis beyond which a region can only be a mistake.
constexpr double kMaxSamples = 1 << 14;

constexpr int64_t kGrain = 2048;  // bins per task, a few samples each

struct RoiAlignAttrs {
  RoiGrid grid;
  int64_t sampling_ratio;
  bool aligned;
};

RoiAlignAttrs ReadAttrs(AttrReader& reader) {
  const RoiAlignAttrs attrs = {.grid = ReadRoiGrid(reader),
                               .sampling_ratio = reader.Int("sampling_ratio", -1),
                               .aligned = reader.Bool("aligned", false)};
  if (static_cast<double>(attrs.sampling_ratio) > kMaxSamples) {
    reader.Fail(absl::StrCat("attribute 'sampling_ratio' is ", attrs.sampling_ratio));
  }
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(
      const Shape shape,
      InferRoiShape(ctx.input(kX).shape, ctx.input(kRois).shape, ctx.attrs<RoiAlignAttrs>().grid));
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

// A sample's two neighbours on one axis. Samples more than a pixel outside count as zero.
template <typename T>
struct Sample {
  int64_t low, high;
  T low_weight, high_weight;
  bool inside;
};

template <typename T>
Sample<T> SampleAt(T position, int64_t size) {
  if (!(position >= -1) || !(position <= static_cast<T>(size))) return {0, 0, 0, 0, false};
  const T clamped = std::max(position, T{0});
  const auto low = static_cast<int64_t>(clamped);
  if (low >= size - 1) return {size - 1, size - 1, 0, 1, true};
  const T low_weight = static_cast<T>(low + 1) - clamped;
  return {low, low + 1, low_weight, 1 - low_weight, true};
}

// The samples of all bins on one axis, bin by bin.
template <typename T>
struct AxisSamples {
  std::vector<Sample<T>> samples;
  int64_t per_bin = 0;

  absl::Status Place(T start, T end, int64_t bins, int64_t size, const RoiAlignAttrs& attrs) {
    T length = end - start;
    if (!attrs.aligned) length = std::max(length, T{1});
    const T bin = length / static_cast<T>(bins);
    const double wanted = attrs.sampling_ratio > 0 ? static_cast<double>(attrs.sampling_ratio)
                                                   : std::ceil(static_cast<double>(bin));
    if (!(std::abs(wanted) <= kMaxSamples)) {
      return InvalidArgument("a region of interest is ", length, " pixels long");
    }
    per_bin = std::max<int64_t>(static_cast<int64_t>(wanted), 0);
    samples.clear();
    for (int64_t b = 0; b < bins; ++b) {
      for (int64_t i = 0; i < per_bin; ++i) {
        const T in_bin = (static_cast<T>(i) + T{0.5}) / static_cast<T>(per_bin);
        samples.push_back(SampleAt(start + bin * (static_cast<T>(b) + in_bin), size));
      }
    }
    return absl::OkStatus();
  }
};

// The mean over one bin; NaN for a bin without samples, as in Paddle.
template <typename T>
T PoolBin(const T* plane, int64_t width, const Sample<T>* rows, int64_t num_rows,
          const Sample<T>* columns, int64_t num_columns) {
  const int64_t count = num_rows * num_columns;
  if (count == 0) return std::numeric_limits<T>::quiet_NaN();
  T sum = 0;
  for (int64_t i = 0; i < num_rows; ++i) {
    const Sample<T>& y = rows[i];
    if (!y.inside) continue;
    const T* low = plane + y.low * width;
    const T* high = plane + y.high * width;
    for (int64_t j = 0; j < num_columns; ++j) {
      const Sample<T>& x = columns[j];
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
                         AxisSamples<T>& rows, AxisSamples<T>& columns, T* out) {
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  const T scale = attrs.grid.spatial_scale, offset = attrs.aligned ? T{0.5} : T{0};
  INTERP_RETURN_IF_ERROR(columns.Place(box[0] * scale - offset, box[2] * scale - offset,
                                       attrs.grid.width, width, attrs));
  INTERP_RETURN_IF_ERROR(rows.Place(box[1] * scale - offset, box[3] * scale - offset,
                                    attrs.grid.height, height, attrs));
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
  ParallelFor(ctx.num_threads(), num_rois, kGrain / (roi_size + 1) + 1,
              [&](int64_t begin, int64_t end) {
                AxisSamples<T> rows, columns;
                for (int64_t r = begin; r < end; ++r) {
                  statuses[r] = AlignRegion(attrs, rois.data<T>() + r * 4, x, images[r], rows,
                                            columns, out + r * roi_size);
                }
              });
  for (const absl::Status& status : statuses) INTERP_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "roi_align",
    .inputs = {{"X"}, {"ROIs"}, {"RoisNum", kOptional | kAnyDType}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<RoiAlignAttrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, RoiAlign<float>}, {DType::kFloat64, RoiAlign<double>}},
});

}  // namespace
}  // namespace interp
