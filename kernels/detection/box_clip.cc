// box_clip: clips the boxes of each image to the original image. A row of ImInfo is [height, width,
// scale] of the scaled image; the last pixel of the original is round(size / scale) - 1.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/roi_batches.h"

namespace interp {
namespace {

constexpr int kInput = 0;
constexpr int kImInfo = 1;
constexpr int kOutput = 0;

absl::Status Infer(InferContext& ctx) {
  const Tensor& boxes = ctx.input(kInput);
  const Shape& info = ctx.input(kImInfo).shape;
  if (boxes.shape.rank() < 2 || boxes.shape.back() != 4) {
    return InvalidArgument("input 'Input' has shape ", ToString(boxes.shape),
                           ", expected [N,...,4]");
  }
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, LodOffsets(boxes));
  if (info.rank() != 2 || info[1] != 3 || info[0] < std::ssize(offsets) - 1) {
    return InvalidArgument("input 'ImInfo' has shape ", ToString(info), ", expected [",
                           offsets.size() - 1, ",3]");
  }
  ctx.ShareShape(kInput, kOutput);
  return absl::OkStatus();
}

template <typename T>
absl::Status BoxClip(KernelContext& ctx) {
  const Tensor& boxes = ctx.input(kInput);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, LodOffsets(boxes));
  const int64_t row_size = boxes.shape.numel(1, boxes.shape.rank());
  const T* info = ctx.input(kImInfo).data<T>();
  const T* in = boxes.data<T>();
  T* out = ctx.output(kOutput).mutable_data<T>();
  for (size_t image = 0; image + 1 < offsets.size(); ++image, info += 3) {
    const T last_x = std::round(info[1] / info[2]) - 1;
    const T last_y = std::round(info[0] / info[2]) - 1;
    for (int64_t i = offsets[image] * row_size; i < offsets[image + 1] * row_size; i += 2) {
      out[i] = std::max(std::min(in[i], last_x), T{0});
      out[i + 1] = std::max(std::min(in[i + 1], last_y), T{0});
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "box_clip",
    .inputs = {{"Input"}, {"ImInfo"}},
    .outputs = {{"Output"}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, BoxClip<float>}, {DType::kFloat64, BoxClip<double>}},
    .inplace = {{kInput, kOutput}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
