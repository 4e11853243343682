// prroi_pool_grad: every element of Out@GRAD goes to the pixels of its bin by their weights, and to
// the corners of its region by what the edges of the bin would take in. Paddle's CPU kernel keeps
// only the last of several contributions to a pixel, and shifts ROIs@GRAD by one; this is the
// derivative.
#include <algorithm>
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/prroi_pool.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 1;
constexpr int kRois = 2;
constexpr int kRoisNum = 3;
constexpr int kOutGrad = 4;
constexpr int kXGrad = 0;
constexpr int kRoisGrad = 1;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(
      const Shape out,
      InferRoiShape(ctx.input(kX).shape, ctx.input(kRois).shape, ctx.attrs<PrRoiAttrs>().grid));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOut, "Out", out));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", out));
  ctx.ShareShape(kX, kXGrad);
  ctx.ShareShape(kRois, kRoisGrad);
  return absl::OkStatus();
}

template <typename T>
void Spread(const PrRoiSpan<T>& rows, const PrRoiSpan<T>& columns, T grad, T* plane,
            int64_t width) {
  for (size_t j = 0; j < rows.weights.size(); ++j) {
    T* const pixels = plane + (rows.first + static_cast<int64_t>(j)) * width + columns.first;
    const T share = grad * rows.weights[j];
    for (size_t i = 0; i < columns.weights.size(); ++i) pixels[i] += share * columns.weights[i];
  }
}

// A line of pixels: how many, and from one to the next.
struct Line {
  int64_t size, stride;
};

// The integral along an edge of a bin, at `at` of `line` and over `span` across it.
template <typename T>
T AlongEdge(const PrRoiSpan<T>& span, int64_t span_stride, T at, const Line& line, const T* plane) {
  if (!(at > T{-1} && at < static_cast<T>(line.size))) return T{0};
  const auto low = static_cast<int64_t>(std::floor(at));
  const T rest = at - static_cast<T>(low);
  T sum = 0;
  for (size_t k = 0; k < span.weights.size(); ++k) {
    const T* const pixels = plane + (span.first + static_cast<int64_t>(k)) * span_stride;
    const T before = low >= 0 ? pixels[low * line.stride] : T{0};
    const T after = low + 1 < line.size ? pixels[(low + 1) * line.stride] : T{0};
    sum += span.weights[k] * ((T{1} - rest) * before + rest * after);
  }
  return sum;
}

// Where a bin is in its region along one axis.
struct BinOf {
  int64_t index, count;
};

// Adds to the gradients of both ends of a region what those of the edges of one bin give.
template <typename T>
void AddEdges(const BinOf& bin, T of_start, T of_end, T* low, T* high) {
  const T start = static_cast<T>(bin.index) / static_cast<T>(bin.count);
  const T end = static_cast<T>(bin.index + 1) / static_cast<T>(bin.count);
  *low += of_start * (T{1} - start) + of_end * (T{1} - end);
  *high += of_start * start + of_end * end;
}

// The region that a thread works on.
template <typename T>
struct Region {
  const RoiGrid& grid;
  const PrRoiBins<T>& bins;
  int64_t height, width;
};

// Adds the gradient of a region's corners in one channel.
template <typename T>
void AddCorners(const Region<T>& region, const T* plane, const T* out, const T* out_grad,
                T* corners) {
  const T area = region.bins.area();
  for (int64_t h = 0; h < region.grid.height; ++h) {
    for (int64_t w = 0; w < region.grid.width; ++w, ++out, ++out_grad) {
      const PrRoiSpan<T>& rows = region.bins.rows[h];
      const PrRoiSpan<T>& columns = region.bins.columns[w];
      const T grad = *out_grad / area * static_cast<T>(region.grid.spatial_scale);
      const auto across = [&](T x) {
        return AlongEdge(rows, region.width, x, {region.width, 1}, plane) - rows.length() * *out;
      };
      const auto down = [&](T y) {
        return AlongEdge(columns, int64_t{1}, y, {region.height, region.width}, plane) -
               columns.length() * *out;
      };
      AddEdges<T>({w, region.grid.width}, -grad * across(columns.start), grad * across(columns.end),
                  corners, corners + 2);
      AddEdges<T>({h, region.grid.height}, -grad * down(rows.start), grad * down(rows.end),
                  corners + 1, corners + 3);
    }
  }
}

// Regions overlap, channels share nothing: threads share the channels.
template <typename T>
void SpreadAll(KernelContext& ctx, const std::vector<PrRoiBins<T>>& regions,
               const std::vector<int64_t>& images, Tensor& x_grad) {
  const int64_t channels = x_grad.shape[1], height = x_grad.shape[2], width = x_grad.shape[3];
  const int64_t bins = ctx.input(kOut).shape[2] * ctx.input(kOut).shape[3];
  T* const to = x_grad.mutable_data<T>();
  std::fill_n(to, x_grad.numel(), T{0});
  ParallelFor(ctx.num_threads(), channels, 1, [&](int64_t begin, int64_t end) {
    for (size_t r = 0; r < regions.size(); ++r) {
      const T area = regions[r].area();
      if (!(area > 0)) continue;
      for (int64_t c = begin; c < end; ++c) {
        const T* grad =
            ctx.input(kOutGrad).data<T>() + (static_cast<int64_t>(r) * channels + c) * bins;
        T* const plane = to + (images[r] * channels + c) * height * width;
        for (const PrRoiSpan<T>& rows : regions[r].rows) {
          for (const PrRoiSpan<T>& columns : regions[r].columns) {
            Spread(rows, columns, *grad++ / area, plane, width);
          }
        }
      }
    }
  });
}

template <typename T>
void MoveAll(KernelContext& ctx, const std::vector<PrRoiBins<T>>& regions,
             const std::vector<int64_t>& images, Tensor& rois_grad) {
  const Tensor& x = ctx.input(kX);
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  const RoiGrid& grid = ctx.attrs<PrRoiAttrs>().grid;
  const int64_t bins = grid.height * grid.width;
  T* const to = rois_grad.mutable_data<T>();
  std::fill_n(to, rois_grad.numel(), T{0});
  ParallelFor(ctx.num_threads(), std::ssize(regions), 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (!(regions[r].area() > 0)) continue;
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t first = (r * channels + c) * bins;
        AddCorners<T>({grid, regions[r], height, width},
                      x.data<T>() + (images[r] * channels + c) * height * width,
                      ctx.input(kOut).data<T>() + first, ctx.input(kOutGrad).data<T>() + first,
                      to + 4 * r);
      }
    }
  });
}

template <typename T>
absl::Status PrRoiPoolGrad(KernelContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Tensor& rois = ctx.input(kRois);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> images,
                          ImageOfRoi(rois, ctx.optional_input(kRoisNum), x[0]));
  std::vector<PrRoiBins<T>> regions;
  for (int64_t r = 0; r < rois.shape[0]; ++r) {
    regions.emplace_back(ctx.attrs<PrRoiAttrs>().grid, rois.data<T>() + 4 * r, x[2], x[3]);
  }
  if (Tensor* const grad = ctx.optional_output(kXGrad)) SpreadAll(ctx, regions, images, *grad);
  if (Tensor* const grad = ctx.optional_output(kRoisGrad)) MoveAll(ctx, regions, images, *grad);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "prroi_pool_grad",
    .inputs = {{"X"}, {"Out"}, {"ROIs"}, {"BatchRoINums", kOptional | kAnyDType}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"ROIs@GRAD", kOptional}},
    .parse = ParseAttrs<PrRoiAttrs, ReadPrRoiAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, PrRoiPoolGrad<float>}, {DType::kFloat64, PrRoiPoolGrad<double>}},
});

}  // namespace
}  // namespace interp
