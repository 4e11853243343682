// grid_sampler: Output = X sampled at the points of Grid, whose coordinates run from -1 to 1 across
// each axis (x first).
//
//   X [N,C,H,W],   Grid [N,Ho,Wo,2]    -> Output [N,C,Ho,Wo]
//   X [N,C,D,H,W], Grid [N,Do,Ho,Wo,3] -> Output [N,C,Do,Ho,Wo]
//
// Both ranks are one loop: a point has 2^rank neighbours, each an offset into a channel and a
// weight, found once and used by all channels.
#include "kernels/detection/grid_sampler.h"

#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kGrid = 1;
constexpr int kOutput = 0;

constexpr int64_t kGrain = 512;  // points per task

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out,
                          GridOutputShape(ctx.input(kX).shape, ctx.input(kGrid).shape));
  ctx.SetShape(kOutput, out);
  ctx.output(kOutput).lod = ctx.input(kX).lod;
  return absl::OkStatus();
}

template <typename T>
absl::Status GridSampler(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& grid = ctx.input(kGrid);
  const GridAttrs& attrs = ctx.attrs<GridAttrs>();
  const absl::Span<const int64_t> sizes = x.shape.dims().subspan(2);
  const int64_t axes = std::ssize(sizes), channels = x.shape[1];
  const int64_t in_plane = x.shape.numel(2, x.shape.rank());
  const int64_t points = grid.shape.numel(1, grid.shape.rank() - 1);  // per image
  T* const out = ctx.output(kOutput).mutable_data<T>();
  ParallelFor(ctx.num_threads(), grid.shape[0] * points, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Neighbours<T> n = NeighboursOf(grid.data<T>() + i * axes, sizes, attrs);
      const int64_t image = i / points;
      const T* in = x.data<T>() + image * channels * in_plane;
      T* to = out + image * channels * points + i % points;
      for (int64_t c = 0; c < channels; ++c, in += in_plane, to += points) {
        T sum = 0;
        for (int k = 0; k < n.count; ++k)
          sum += (n.inside[k] ? in[n.offset[k]] : T{0}) * n.weight[k];
        *to = sum;
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "grid_sampler",
    .inputs = {{"X"}, {"Grid"}},
    .outputs = {{"Output"}},
    .parse = ParseAttrs<GridAttrs, ReadGridAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, GridSampler<float>}, {DType::kFloat64, GridSampler<double>}},
    .gradient = {.inputs = {"X", "Grid", "Output@GRAD"}, .outputs = {"X@GRAD", "Grid@GRAD"}},
});

}  // namespace
}  // namespace interp
