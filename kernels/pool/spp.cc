// spp, spatial pyramid pooling: the maximum or average over 1, 2 x 2, 4 x 4, ... bins of the image.
// X [N,C,H,W] -> Out [N, C * bins of all levels], by level, channel, row and column. As in Paddle,
// bins that lie in the padding alone give the least finite number, or NaN.
#include "kernels/pool/spp.h"

#include <limits>

#include "core/op_def.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/read_choice.h"
#include "kernels/util/shape_args.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out, ResolveSpp(ctx.attrs<SppAttrs>(), ctx.input(kX).shape));
  ctx.SetShape(kOut, out);
  return absl::OkStatus();
}

template <typename T>
T PoolBin(bool max, const T* plane, int64_t width, int64_t top, int64_t bottom, int64_t left,
          int64_t right) {
  T result = max ? T{std::numeric_limits<float>::lowest()} : T{0};
  for (int64_t y = top; y < bottom; ++y) {
    for (int64_t i = y * width + left; i < y * width + right; ++i) {
      result = max ? std::max(result, plane[i]) : result + plane[i];
    }
  }
  return max ? result : result / static_cast<T>((bottom - top) * (right - left));
}

template <typename T>
absl::Status Spp(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SppAttrs>();
  const Tensor& x = ctx.input(kX);
  const Shape& shape = x.shape;
  const int64_t channels = shape[1], plane = shape[2] * shape[3];
  const T* const from = x.data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  const int64_t grain = GrainFor(plane * attrs.levels);
  ParallelFor(ctx.num_threads(), shape[0] * channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* const row = out + i / channels * channels * SppBins(attrs.levels);
      for (int64_t level = 0; level < attrs.levels; ++level) {
        const int64_t bins = int64_t{1} << (2 * level);
        T* const to = row + channels * SppBins(level) + i % channels * bins;
        ForEachSppBin(level, shape,
                      [&](int64_t bin, int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
                        to[bin] = PoolBin(attrs.max, from + i * plane, shape[3], y0, y1, x0, x1);
                      });
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "spp",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SppAttrs, ReadSppAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Spp<float>}, {DType::kFloat64, Spp<double>}},
    .gradient = {.inputs = {"X", "Out", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace

SppAttrs ReadSppAttrs(AttrReader& reader) {
  // 4^15 bins of 2^14 rows are more than any image has.
  constexpr int64_t kMostLevels = 15;
  const SppAttrs attrs = {
      reader.Int("pyramid_height", 0),
      ReadChoice<bool>(reader, "pooling_type", {{"max", true}, {"avg", false}})};
  if (attrs.levels < 1 || attrs.levels > kMostLevels) {
    reader.Fail(absl::StrCat("attribute 'pyramid_height' is ", attrs.levels, ", expected 1 to ",
                             kMostLevels));
  }
  return attrs;
}

absl::StatusOr<Shape> ResolveSpp(const SppAttrs& attrs, const Shape& x) {
  if (x.rank() != 4 || x[2] == 0 || x[3] == 0) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected [N,C,H,W] with pixels");
  }
  const int64_t bins = int64_t{1} << (attrs.levels - 1);
  for (const int64_t size : {x[2], x[3]}) {
    const SppAxis axis(size, bins);
    if ((size + 2 * axis.padding) / axis.kernel == bins) continue;
    return InvalidArgument("input 'X' has shape ", ToString(x), ", too small for ", bins, " x ",
                           bins, " bins");
  }
  INTERP_ASSIGN_OR_RETURN(const int64_t columns, CheckedProduct(x[1], SppBins(attrs.levels)));
  return Shape{x[0], columns};
}

}  // namespace interp::nn
