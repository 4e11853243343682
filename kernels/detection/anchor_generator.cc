// anchor_generator: for every cell of a feature map, one box per aspect ratio and size, in pixels
// of the image. Only the shape of the input counts. Anchors and Variances are [H, W, anchors, 4].
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/priors.h"

namespace interp {
namespace {

constexpr int kInput = 0;
constexpr int kAnchors = 0;
constexpr int kVariances = 1;

constexpr size_t kMaxAnchors = size_t{1} << 20;  // per cell

struct AnchorAttrs {
  std::vector<float> sizes, ratios, variances, stride;
  float offset;
};

AnchorAttrs ReadAttrs(AttrReader& reader) {
  AnchorAttrs attrs = {.sizes = reader.Floats("anchor_sizes"),
                       .ratios = reader.Floats("aspect_ratios"),
                       .variances = ReadVariances(reader),
                       .stride = reader.Floats("stride", {16, 16}),
                       .offset = reader.Float("offset", 0.5)};
  const bool positive = std::all_of(attrs.stride.begin(), attrs.stride.end(),
                                    [](float stride) { return stride > 0; });
  if (attrs.stride.size() != 2 || !positive) {
    reader.Fail("attribute 'stride' is not two positive numbers");
  }
  if (attrs.sizes.size() * attrs.ratios.size() > kMaxAnchors) {
    reader.Fail("attributes ask for too many boxes per cell");
  }
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const Shape& features = ctx.input(kInput).shape;
  if (features.rank() != 4) {
    return InvalidArgument("input 'Input' has shape ", ToString(features),
                           ", expected 4 dims (NCHW)");
  }
  const AnchorAttrs& attrs = ctx.attrs<AnchorAttrs>();
  const Shape shape = {features[2], features[3], std::ssize(attrs.ratios) * std::ssize(attrs.sizes),
                       4};
  ctx.SetShape(kAnchors, shape);
  ctx.SetShape(kVariances, shape);
  return absl::OkStatus();
}

// Half of width and height of each anchor, less half a pixel.
template <typename T>
std::vector<T> HalfExtents(const AnchorAttrs& attrs) {
  const T stride_width = attrs.stride[0], stride_height = attrs.stride[1];
  std::vector<T> extents;
  for (const float ratio : attrs.ratios) {
    const T base_width = std::round(std::sqrt(stride_width * stride_height / ratio));
    const T base_height = std::round(base_width * ratio);
    for (const float size : attrs.sizes) {
      extents.push_back(T{0.5} * (size / stride_width * base_width - 1));
      extents.push_back(T{0.5} * (size / stride_height * base_height - 1));
    }
  }
  return extents;
}

template <typename T>
absl::Status AnchorGenerator(KernelContext& ctx) {
  const AnchorAttrs& attrs = ctx.attrs<AnchorAttrs>();
  const Shape& features = ctx.input(kInput).shape;
  const T stride_width = attrs.stride[0], stride_height = attrs.stride[1], offset = attrs.offset;
  const std::vector<T> extents = HalfExtents<T>(attrs);
  T* anchor = ctx.output(kAnchors).mutable_data<T>();
  for (int64_t h = 0; h < features[2]; ++h) {
    const T y = static_cast<T>(h) * stride_height + offset * (stride_height - 1);
    for (int64_t w = 0; w < features[3]; ++w) {
      const T x = static_cast<T>(w) * stride_width + offset * (stride_width - 1);
      for (size_t i = 0; i < extents.size(); i += 2, anchor += 4) {
        anchor[0] = x - extents[i];
        anchor[1] = y - extents[i + 1];
        anchor[2] = x + extents[i];
        anchor[3] = y + extents[i + 1];
      }
    }
  }
  FillVariances<T>(attrs.variances, ctx.output(kVariances));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "anchor_generator",
    .inputs = {{"Input", kNoNeedBuffer | kAnyLayout}},
    .outputs = {{"Anchors"}, {"Variances"}},
    .parse = ParseAttrs<AnchorAttrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, AnchorGenerator<float>},
                {DType::kFloat64, AnchorGenerator<double>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
