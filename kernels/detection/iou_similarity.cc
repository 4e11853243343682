// iou_similarity: Out[i][j] = intersection over union of X[i] and Y[j], boxes of four corners.
// Unlike in non-maximum suppression, areas of inverted boxes are not clamped and 1e-10 keeps the
// quotient finite.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/detection/box_attrs.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;

IouAttrs ReadAttrs(AttrReader& reader) {
  return {.normalized = reader.Bool("box_normalized", true)};
}

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& y = ctx.input(kY).shape;
  if (x.rank() != 2 || x[1] != 4) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected [N,4]");
  }
  if (y.rank() != 2 || y[1] != 4) {
    return InvalidArgument("input 'Y' has shape ", ToString(y), ", expected [M,4]");
  }
  ctx.SetShape(kOut, {x[0], y[0]});
  ctx.output(kOut).lod = ctx.input(kX).lod;
  return absl::OkStatus();
}

template <typename T>
T Similarity(const T* a, const T* b, T pixel) {
  const T area_a = (a[3] - a[1] + pixel) * (a[2] - a[0] + pixel);
  const T area_b = (b[3] - b[1] + pixel) * (b[2] - b[0] + pixel);
  const T height = std::max(std::min(a[3], b[3]) - std::max(a[1], b[1]) + pixel, T{0});
  const T width = std::max(std::min(a[2], b[2]) - std::max(a[0], b[0]) + pixel, T{0});
  const T inter = width * height;
  return inter / (area_a + area_b - inter + static_cast<T>(1e-10));
}

template <typename T>
absl::Status IouSimilarity(KernelContext& ctx) {
  const T* x = ctx.input(kX).data<T>();
  const T* y = ctx.input(kY).data<T>();
  T* out = ctx.output(kOut).mutable_data<T>();
  const int64_t columns = ctx.input(kY).shape[0];
  const T pixel = ctx.attrs<IouAttrs>().normalized ? T{0} : T{1};
  const int64_t grain = GrainFor(columns);
  ParallelFor(ctx.num_threads(), ctx.input(kX).shape[0], grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        out[i * columns + j] = Similarity(x + i * 4, y + j * 4, pixel);
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "iou_similarity",
    .inputs = {{"X"}, {"Y"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<IouAttrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, IouSimilarity<float>}, {DType::kFloat64, IouSimilarity<double>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
