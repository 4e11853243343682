// roi_pool: maximum over each bin of a region of interest, whose corners are rounded to pixels.
// X [N,C,H,W], ROIs [R,4] -> Out [R,C,pooled_height,pooled_width] and Argmax, positions in the H x
// W plane (-1 and 0 for a bin outside the image).
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
constexpr int kArgmax = 1;

constexpr int64_t kGrain = 1024;  // bins per task, tens of pixels each

struct RoiPoolAttrs {
  RoiGrid grid;
};

RoiPoolAttrs ReadAttrs(AttrReader& reader) { return {.grid = ReadRoiGrid(reader)}; }

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(InferRoiPooling(ctx, ctx.attrs<RoiPoolAttrs>().grid));
  ctx.SetShape(kArgmax, ctx.output(kOut).shape);
  return absl::OkStatus();
}

// Pixels [begin, end) of one axis that a bin covers, within the image.
struct Span {
  int64_t begin, end;
};

template <typename T>
int64_t RoundToPixel(T coordinate) {
  // Far beyond any image either way; NaN becomes the lower bound.
  const T rounded = std::round(coordinate);
  if (!(rounded > T{-1e9})) return -1'000'000'000;
  return rounded < T{1e9} ? static_cast<int64_t>(rounded) : 1'000'000'000;
}

template <typename T>
void BinSpans(T low, T high, int64_t bins, int64_t size, std::vector<Span>& spans) {
  const int64_t start = RoundToPixel(low);
  const int64_t length = std::max<int64_t>(RoundToPixel(high) - start + 1, 1);
  const float bin_size = static_cast<float>(length) / static_cast<float>(bins);
  for (int64_t i = 0; i < bins; ++i) {
    const auto begin = static_cast<int64_t>(std::floor(static_cast<float>(i) * bin_size));
    const auto end = static_cast<int64_t>(std::ceil(static_cast<float>(i + 1) * bin_size));
    spans.push_back(
        {std::clamp<int64_t>(begin + start, 0, size), std::clamp<int64_t>(end + start, 0, size)});
  }
}

template <typename T>
void PoolBin(const T* plane, int64_t width, const Span& rows, const Span& columns, T& out,
             int64_t& argmax) {
  argmax = -1;
  const bool empty = rows.end <= rows.begin || columns.end <= columns.begin;
  out = empty ? T{0} : -std::numeric_limits<T>::max();
  for (int64_t h = rows.begin; h < rows.end; ++h) {
    for (int64_t w = columns.begin; w < columns.end; ++w) {
      const int64_t at = h * width + w;
      if (!(plane[at] > out)) continue;
      out = plane[at];
      argmax = at;
    }
  }
}

template <typename T>
absl::Status RoiPool(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& rois = ctx.input(kRois);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> images,
                          ImageOfRoi(rois, ctx.optional_input(kRoisNum), x.shape[0]));
  const RoiGrid& grid = ctx.attrs<RoiPoolAttrs>().grid;
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  const int64_t bins = grid.height * grid.width;
  const T scale = grid.spatial_scale;
  T* const out = ctx.output(kOut).mutable_data<T>();
  Tensor* const argmax = ctx.optional_output(kArgmax);
  const int64_t grain = GrainFor(channels * bins, kGrain);
  ParallelFor(ctx.num_threads(), rois.shape[0], grain, [&](int64_t begin, int64_t end) {
    std::vector<Span> rows, columns;
    for (int64_t r = begin; r < end; ++r) {
      const T* box = rois.data<T>() + r * 4;
      rows.clear();
      columns.clear();
      BinSpans(box[0] * scale, box[2] * scale, grid.width, width, columns);
      BinSpans(box[1] * scale, box[3] * scale, grid.height, height, rows);
      for (int64_t i = r * channels * bins; i < (r + 1) * channels * bins; ++i) {
        const int64_t c = i / bins % channels, bin = i % bins;
        int64_t unused;
        PoolBin(x.data<T>() + (images[r] * channels + c) * height * width, width,
                rows[bin / grid.width], columns[bin % grid.width], out[i],
                argmax != nullptr ? argmax->mutable_data<int64_t>()[i] : unused);
      }
    }
  });
  return absl::OkStatus();
}

void InferTypes(DTypeContext& ctx) { ctx.Set(kArgmax, DType::kInt64); }

INTERP_REGISTER_OP(OpDef{
    .type = "roi_pool",
    .inputs = {{"X"}, {"ROIs"}, {"RoisNum", kOptional | kAnyDType}},
    .outputs = {{"Out"}, {"Argmax", kOptional}},
    .parse = ParseAttrs<RoiPoolAttrs, ReadAttrs>,
    .infer_dtype = InferTypes,
    .infer = Infer,
    .kernels = {{DType::kFloat32, RoiPool<float>}, {DType::kFloat64, RoiPool<double>}},
    .gradient = {.inputs = {"X", "ROIs", "RoisNum", "Argmax", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
