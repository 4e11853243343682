// nms: greedy non-maximum suppression of boxes that are in falling order of score. KeepBoxesIdxs
// [K] has the rows of Boxes [M,4] that overlap no kept row before them by more than iou_threshold.
// Unlike in other ops a box with negative sides has an area.
#include <algorithm>
#include <vector>

#include "core/op_def.h"

namespace interp {
namespace {

constexpr int kBoxes = 0;
constexpr int kKept = 0;

struct NmsAttrs {
  float threshold = 1;
};

NmsAttrs ReadAttrs(AttrReader& reader) { return {reader.Float("iou_threshold", 1)}; }

// The arithmetic is Paddle's to the last bit: which boxes survive hangs on it.
template <typename T>
bool OverlapsBeyond(const T* a, const T* b, float threshold) {
  const T width = std::min(b[2], a[2]) - std::max(b[0], a[0]);
  const T height = std::min(b[3], a[3]) - std::max(b[1], a[1]);
  const T inter = (width > 0 ? width : T{0}) * (height > 0 ? height : T{0});
  const T all = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inter;
  return inter / all > threshold;
}

template <typename T>
absl::Status Nms(KernelContext& ctx) {
  const Tensor& boxes = ctx.input(kBoxes);
  if (boxes.shape.rank() != 2 || boxes.shape[1] != 4) {
    return InvalidArgument("input 'Boxes' has shape ", ToString(boxes.shape), ", expected [M,4]");
  }
  const float threshold = ctx.attrs<NmsAttrs>().threshold;
  const T* const box = boxes.data<T>();
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < boxes.shape[0]; ++i) {
    const bool overlaps = std::any_of(kept.begin(), kept.end(), [&](int64_t k) {
      return OverlapsBeyond(box + 4 * k, box + 4 * i, threshold);
    });
    if (!overlaps) kept.push_back(i);
  }
  Tensor& out = ctx.output(kKept);
  out.shape = {std::ssize(kept)};
  out.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  std::copy(kept.begin(), kept.end(), out.mutable_data<int64_t>());
  return absl::OkStatus();
}

void InferTypes(DTypeContext& ctx) { ctx.Set(kKept, DType::kInt64); }

INTERP_REGISTER_OP(OpDef{
    .type = "nms",
    .inputs = {{"Boxes"}},
    .outputs = {{"KeepBoxesIdxs"}},
    .parse = ParseAttrs<NmsAttrs, ReadAttrs>,
    .infer_dtype = InferTypes,
    .kernels = {{DType::kFloat32, Nms<float>}, {DType::kFloat64, Nms<double>}},
    .dynamic_outputs = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
