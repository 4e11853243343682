// polygon_box_transform: corners from their offsets, as text detectors give them. Input [N,2K,H,W]:
// even channels are x, odd ones y offsets from a pixel of an image four times as large.

#include "core/op_def.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kInput = 0;
constexpr int kOutput = 0;

constexpr int64_t kImageScale = 4;

absl::Status Infer(InferContext& ctx) {
  const Shape& in = ctx.input(kInput).shape;
  if (in.rank() != 4 || in[1] % 2 != 0) {
    return InvalidArgument("input 'Input' has shape ", ToString(in),
                           ", expected [N,C,H,W] with an even C");
  }
  ctx.SetShape(kOutput, in);
  return absl::OkStatus();
}

template <typename T>
absl::Status PolygonBoxTransform(KernelContext& ctx) {
  const Shape& shape = ctx.input(kInput).shape;
  if (shape.numel() == 0) return absl::OkStatus();
  const int64_t height = shape[2], width = shape[3];
  const T* const in = ctx.input(kInput).data<T>();
  T* const out = ctx.output(kOutput).mutable_data<T>();
  const int64_t grain = GrainFor(width);
  ParallelFor(ctx.num_threads(), shape[0] * shape[1] * height, grain,
              [=](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  const bool is_x = row / height % 2 == 0;
                  for (int64_t i = 0; i < width; ++i) {
                    const int64_t pixel = kImageScale * (is_x ? i : row % height);
                    out[row * width + i] = static_cast<T>(pixel) - in[row * width + i];
                  }
                }
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "polygon_box_transform",
    .inputs = {{"Input"}},
    .outputs = {{"Output"}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, PolygonBoxTransform<float>},
                {DType::kFloat64, PolygonBoxTransform<double>}},
    .inplace = {{kInput, kOutput}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
