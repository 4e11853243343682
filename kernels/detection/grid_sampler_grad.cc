// grid_sampler_grad. X@GRAD: every element of Output@GRAD goes to the neighbours of its point, by
// their weights. Grid@GRAD: what the weights change by when the point moves. A point that padding
// holds at the border stays where it is; the nearest neighbour does not change either.
#include <algorithm>
#include <cmath>

#include "kernels/detection/grid_sampler.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kGrid = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;
constexpr int kGridGrad = 1;

constexpr int64_t kGrain = 512;  // points per task

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out,
                          GridOutputShape(ctx.input(kX).shape, ctx.input(kGrid).shape));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Output@GRAD", out));
  ctx.ShareShape(kX, kXGrad);
  ctx.ShareShape(kGrid, kGridGrad);
  return absl::OkStatus();
}

// By how many pixels a point moves when `value` does, see PixelOf.
template <typename T>
T PixelSlope(T value, int64_t size, const GridAttrs& attrs) {
  const T last = static_cast<T>(size - 1);
  const T half = static_cast<T>(0.5);
  const T slope = (attrs.align_corners ? last : static_cast<T>(size)) * half;
  if (attrs.padding == GridPadding::kZeros) return slope;
  T at = attrs.align_corners ? (value + 1) * slope : (value + 1) * slope - half;
  T sign = 1;
  if (attrs.padding == GridPadding::kReflection) {
    if (attrs.align_corners && size == 1) return 0;
    const T shift = attrs.align_corners ? T{0} : half;
    const T period = 2 * (attrs.align_corners ? last : static_cast<T>(size));
    const T magnitude = std::abs(at + shift);
    const T rest = magnitude - std::floor(magnitude / period) * period;
    const bool flipped = rest > period - rest;
    sign = (at + shift < 0) == flipped ? T{1} : T{-1};
    at = std::min(rest, period - rest) - shift;
    if (attrs.align_corners) return sign * slope;
  }
  return at >= 0 && at <= last ? sign * slope : T{0};
}

struct GridCase {
  absl::Span<const int64_t> sizes;
  int64_t axes, channels, plane, points;  // points: of one image
};

template <typename T>
void ImageGradient(KernelContext& ctx, const GridCase& c, T* x_grad) {
  const auto& attrs = ctx.attrs<GridAttrs>();
  const T* grid = ctx.input(kGrid).data<T>();
  const T* out_grad = ctx.input(kOutGrad).data<T>();
  const int64_t batch = ctx.input(kX).shape[0];
  // With few images the channels are cut as well.
  const int64_t blocks =
      batch >= ctx.num_threads() ? 1 : std::min<int64_t>(c.channels, ctx.num_threads());
  const int64_t grain = GrainFor(c.points, kGrain);
  ParallelFor(ctx.num_threads(), batch * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / blocks;
      const int64_t first = c.channels * (task % blocks) / blocks;
      const int64_t last = c.channels * (task % blocks + 1) / blocks;
      T* planes = x_grad + image * c.channels * c.plane;
      std::fill(planes + first * c.plane, planes + last * c.plane, T{0});
      for (int64_t i = 0; i < c.points; ++i) {
        const Neighbours<T> n =
            NeighboursOf(grid + (image * c.points + i) * c.axes, c.sizes, attrs);
        for (int64_t channel = first; channel < last; ++channel) {
          const T grad = out_grad[(image * c.channels + channel) * c.points + i];
          for (int k = 0; k < n.count; ++k) {
            if (n.inside[k]) planes[channel * c.plane + n.offset[k]] += grad * n.weight[k];
          }
        }
      }
    }
  });
}

// Sums by neighbour, over the channels, of Output@GRAD times the neighbour's value.
template <typename T>
void NeighbourSums(const GridCase& c, const Neighbours<T>& n, const T* image, const T* grads,
                   T* sums) {
  std::fill_n(sums, n.count, T{0});
  for (int64_t channel = 0; channel < c.channels; ++channel) {
    const T grad = grads[channel * c.points];
    for (int k = 0; k < n.count; ++k) {
      if (n.inside[k]) sums[k] += grad * image[channel * c.plane + n.offset[k]];
    }
  }
}

// The gradient of one point by axis. Neighbour k is the upper one on the axis at bit position b
// from the innermost when bit b of k is set.
template <typename T>
void PointGradient(const GridAttrs& attrs, const GridCase& c, const T* point, const T* image,
                   const T* grads, T* result) {
  const Neighbours<T> n = NeighboursOf(point, c.sizes, attrs);
  std::array<T, 1 << kMaxGridAxes> sums;
  NeighbourSums(c, n, image, grads, sums.data());
  std::array<T, kMaxGridAxes> distance;  // from the lower neighbour, innermost axis first
  for (int64_t b = 0; b < c.axes; ++b) {
    const T at = PixelOf(point[b], c.sizes[c.axes - 1 - b], attrs);
    distance[b] = at - std::floor(at);
  }
  for (int64_t b = 0; b < c.axes; ++b) {
    T total = 0;
    for (int k = 0; k < n.count; ++k) {
      T weight = (k >> b & 1) != 0 ? T{1} : T{-1};
      for (int64_t other = 0; other < c.axes; ++other) {
        if (other == b) continue;
        weight *= (k >> other & 1) != 0 ? distance[other] : 1 - distance[other];
      }
      total += weight * sums[k];
    }
    result[b] = total * PixelSlope(point[b], c.sizes[c.axes - 1 - b], attrs);
  }
}

template <typename T>
void GridGradient(KernelContext& ctx, const GridCase& c, Tensor& grid_grad) {
  const auto& attrs = ctx.attrs<GridAttrs>();
  T* result = grid_grad.mutable_data<T>();
  if (attrs.nearest) {
    std::fill_n(result, grid_grad.numel(), T{0});
    return;
  }
  const T* x = ctx.input(kX).data<T>();
  const T* grid = ctx.input(kGrid).data<T>();
  const T* out_grad = ctx.input(kOutGrad).data<T>();
  const int64_t all = ctx.input(kX).shape[0] * c.points;
  ParallelFor(ctx.num_threads(), all, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / c.points;
      PointGradient(attrs, c, grid + i * c.axes, x + image * c.channels * c.plane,
                    out_grad + image * c.channels * c.points + i % c.points, result + i * c.axes);
    }
  });
}

template <typename T>
absl::Status GridSamplerGrad(KernelContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& grid = ctx.input(kGrid).shape;
  const GridCase c = {x.dims().subspan(2), x.rank() - 2, x[1], x.numel(2, x.rank()),
                      grid.numel(1, grid.rank() - 1)};
  if (Tensor* x_grad = ctx.optional_output(kXGrad)) {
    ImageGradient(ctx, c, x_grad->mutable_data<T>());
  }
  if (Tensor* grid_grad = ctx.optional_output(kGridGrad)) GridGradient<T>(ctx, c, *grid_grad);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "grid_sampler_grad",
    .inputs = {{"X"}, {"Grid"}, {"Output@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Grid@GRAD", kOptional}},
    .parse = ParseAttrs<GridAttrs, ReadGridAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, GridSamplerGrad<float>},
                {DType::kFloat64, GridSamplerGrad<double>}},
});

}  // namespace
}  // namespace interp
