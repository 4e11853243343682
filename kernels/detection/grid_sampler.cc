// grid_sampler: Output = X sampled at the points of Grid, whose coordinates run from -1 to 1 across
// each axis (x first).
//
//   X [N,C,H,W],   Grid [N,Ho,Wo,2]    -> Output [N,C,Ho,Wo]
//   X [N,C,D,H,W], Grid [N,Do,Ho,Wo,3] -> Output [N,C,Do,Ho,Wo]
//
// A point has 2^rank neighbours, each an offset into a channel and a weight, found once and used by
// all channels. Bilinear images go in blocks of points.
#include "kernels/detection/grid_sampler.h"

#include "kernels/detection/grid_blocks.h"
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

// Where the points of all images lie, and what they are taken from.
template <typename T>
struct Sampling {
  const T* x;
  const T* grid;
  T* out;
  int64_t channels;
  int64_t plane;   // elements of a channel of X
  int64_t points;  // per image

  const T* InputOf(int64_t i) const { return x + i / points * channels * plane; }
  T* OutputOf(int64_t i) const { return out + i / points * channels * points + i % points; }
};

template <typename T>
void SamplePoints(const Sampling<T>& s, absl::Span<const int64_t> sizes, const GridAttrs& attrs,
                  int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const Neighbours<T> n = NeighboursOf(s.grid + i * std::ssize(sizes), sizes, attrs);
    const T* in = s.InputOf(i);
    T* to = s.OutputOf(i);
    for (int64_t c = 0; c < s.channels; ++c, in += s.plane, to += s.points) {
      T sum = 0;
      for (int k = 0; k < n.count; ++k) {
        sum += (n.inside[k] ? in[n.offset[k]] : T{0}) * n.weight[k];
      }
      *to = sum;
    }
  }
}

template <typename T>
void SampleBlocks(const Sampling<T>& s, absl::Span<const int64_t> sizes, const GridAttrs& attrs,
                  int64_t begin, int64_t end) {
  GridBlock<T> block(sizes[0], sizes[1], attrs);
  int64_t count = 0;
  for (int64_t i = begin; i < end; i += count) {
    const int64_t image_end = (i / s.points + 1) * s.points;
    count = std::min({end - i, image_end - i, GridBlock<T>::kMost});
    block.Locate(s.grid + i * 2, count);
    const T* in = s.InputOf(i);
    T* to = s.OutputOf(i);
    for (int64_t c = 0; c < s.channels; ++c, in += s.plane, to += s.points) block.Sample(in, to);
  }
}

template <typename T>
absl::Status GridSampler(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& grid = ctx.input(kGrid);
  const GridAttrs& attrs = ctx.attrs<GridAttrs>();
  const absl::Span<const int64_t> sizes = x.shape.dims().subspan(2);
  const Sampling<T> sampling = {x.data<T>(),
                                grid.data<T>(),
                                ctx.output(kOutput).mutable_data<T>(),
                                x.shape[1],
                                x.shape.numel(2, x.shape.rank()),
                                grid.shape.numel(1, grid.shape.rank() - 1)};
  const bool blocks = GridBlock<T>::Serves(x.shape, attrs);
  ParallelFor(ctx.num_threads(), grid.shape[0] * sampling.points, kGrain,
              [&](int64_t begin, int64_t end) {
                if (blocks) {
                  SampleBlocks(sampling, sizes, attrs, begin, end);
                } else {
                  SamplePoints(sampling, sizes, attrs, begin, end);
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
