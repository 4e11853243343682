// roi_align_grad: every element of Out@GRAD goes to the pixels its bin was sampled from, by their
// weights; a region counts as one pixel wide and high at least, which roi_align itself does without
// `aligned` alone: Paddle's kernels have it so. roi_pool_grad: it goes to the one that was largest.
//
// Regions overlap; channels share nothing: threads share the channels.
#include <algorithm>
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/roi_align.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kRois = 1;
constexpr int kRoisNum = 2;
constexpr int kXGrad = 0;

absl::Status InferRoiGrad(InferContext& ctx, const RoiGrid& grid, int out_grad) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape,
                          InferRoiShape(ctx.input(kX).shape, ctx.input(kRois).shape, grid));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, out_grad, "Out@GRAD", shape));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

// Calls body(first, last) for ranges of channels on several threads.
template <typename Body>
void ForChannels(KernelContext& ctx, const Shape& x, int64_t work, const Body& body) {
  const int64_t grain = GrainForShare(work, x[1]);
  ParallelFor(ctx.num_threads(), x[1], grain, body);
}

namespace align {

constexpr int kOutGrad = 3;

absl::Status Infer(InferContext& ctx) {
  return InferRoiGrad(ctx, ctx.attrs<RoiAlignAttrs>().grid, kOutGrad);
}

template <typename T>
void SpreadBin(T grad, int64_t width, const RoiSample<T>* rows, int64_t num_rows,
               const RoiSample<T>* columns, int64_t num_columns, T* plane) {
  if (num_rows * num_columns == 0) return;
  const T share = grad / static_cast<T>(num_rows * num_columns);
  for (int64_t i = 0; i < num_rows; ++i) {
    const RoiSample<T>& y = rows[i];
    if (!y.inside) continue;
    T* low = plane + y.low * width;
    T* high = plane + y.high * width;
    for (int64_t j = 0; j < num_columns; ++j) {
      const RoiSample<T>& x = columns[j];
      if (!x.inside) continue;
      low[x.low] += share * y.low_weight * x.low_weight;
      low[x.high] += share * y.low_weight * x.high_weight;
      high[x.low] += share * y.high_weight * x.low_weight;
      high[x.high] += share * y.high_weight * x.high_weight;
    }
  }
}

template <typename T>
void SpreadRegion(const RoiGrid& grid, const RegionSamples<T>& region, int64_t width, const T* grad,
                  T* plane) {
  for (int64_t h = 0; h < grid.height; ++h) {
    for (int64_t w = 0; w < grid.width; ++w) {
      SpreadBin(*grad++, width, region.rows.samples.data() + h * region.rows.per_bin,
                region.rows.per_bin, region.columns.samples.data() + w * region.columns.per_bin,
                region.columns.per_bin, plane);
    }
  }
}

template <typename T>
absl::Status Run(KernelContext& ctx) {
  Tensor* x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr || x_grad->numel() == 0) return absl::OkStatus();
  const auto& attrs = ctx.attrs<RoiAlignAttrs>();
  const Shape& x = x_grad->shape;
  const Tensor& rois = ctx.input(kRois);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> images,
                          ImageOfRoi(rois, ctx.optional_input(kRoisNum), x[0]));
  std::vector<RegionSamples<T>> regions(static_cast<size_t>(rois.shape[0]));
  for (size_t r = 0; r < regions.size(); ++r) {
    INTERP_RETURN_IF_ERROR(regions[r].Place(attrs, rois.data<T>() + 4 * r, T{1}, x[2], x[3]));
  }
  const int64_t plane = x[2] * x[3];
  const int64_t bins = attrs.grid.height * attrs.grid.width;
  const T* grad = ctx.input(kOutGrad).data<T>();
  T* out = x_grad->mutable_data<T>();
  std::fill_n(out, x_grad->numel(), T{0});
  ForChannels(ctx, x, 16 * ctx.input(kOutGrad).numel(), [&](int64_t begin, int64_t end) {
    for (size_t r = 0; r < regions.size(); ++r) {
      for (int64_t c = begin; c < end; ++c) {
        SpreadRegion(attrs.grid, regions[r], x[3],
                     grad + (static_cast<int64_t>(r) * x[1] + c) * bins,
                     out + (images[r] * x[1] + c) * plane);
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "roi_align_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"ROIs"}, {"RoisNum", kOptional | kAnyDType}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}},
    .parse = ParseAttrs<RoiAlignAttrs, ReadRoiAlignAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Run<float>}, {DType::kFloat64, Run<double>}},
});

}  // namespace align

namespace pool {

constexpr int kArgmax = 3;
constexpr int kOutGrad = 4;

struct RoiPoolAttrs {
  RoiGrid grid;
};
RoiPoolAttrs ReadAttrs(AttrReader& reader) { return {.grid = ReadRoiGrid(reader)}; }

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(InferRoiGrad(ctx, ctx.attrs<RoiPoolAttrs>().grid, kOutGrad));
  const Tensor& argmax = ctx.input(kArgmax);
  if (argmax.shape == ctx.input(kOutGrad).shape && argmax.dtype == DType::kInt64) {
    return absl::OkStatus();
  }
  return InvalidArgument("input 'Argmax' is ", DescribeType(argmax), ", expected int64",
                         ToString(ctx.input(kOutGrad).shape));
}

template <typename T>
absl::Status Run(KernelContext& ctx) {
  Tensor* x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr || x_grad->numel() == 0) return absl::OkStatus();
  const Shape& x = x_grad->shape;
  const Tensor& rois = ctx.input(kRois);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> images,
                          ImageOfRoi(rois, ctx.optional_input(kRoisNum), x[0]));
  const int64_t plane = x[2] * x[3];
  const int64_t* argmax = ctx.input(kArgmax).data<int64_t>();
  const Tensor& grad = ctx.input(kOutGrad);
  for (int64_t i = 0; i < grad.numel(); ++i) {
    if (argmax[i] >= -1 && argmax[i] < plane) continue;
    return InvalidArgument("input 'Argmax' holds ", argmax[i], ", expected -1 to ", plane - 1);
  }
  const RoiGrid& grid = ctx.attrs<RoiPoolAttrs>().grid;
  const int64_t bins = grid.height * grid.width;
  T* out = x_grad->mutable_data<T>();
  std::fill_n(out, x_grad->numel(), T{0});
  ForChannels(ctx, x, grad.numel(), [&](int64_t begin, int64_t end) {
    for (int64_t r = 0; r < rois.shape[0]; ++r) {
      for (int64_t c = begin; c < end; ++c) {
        T* to = out + (images[r] * x[1] + c) * plane;
        for (int64_t i = (r * x[1] + c) * bins; i < (r * x[1] + c + 1) * bins; ++i) {
          if (argmax[i] >= 0) to[argmax[i]] += grad.data<T>()[i];
        }
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "roi_pool_grad",
    .inputs = {{"X", kNoNeedBuffer},
               {"ROIs", kNoNeedBuffer},
               {"RoisNum", kOptional | kAnyDType},
               {"Argmax", kAnyDType},
               {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}},
    .parse = ParseAttrs<RoiPoolAttrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Run<float>}, {DType::kFloat64, Run<double>}},
});

}  // namespace pool
}  // namespace
}  // namespace interp
