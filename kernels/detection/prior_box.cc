// prior_box: the default boxes of SSD, a fixed set of sizes and shapes centred on every cell of a
// feature map. Only the shapes of the inputs count. Boxes and Variances are [H, W, priors, 4],
// boxes as fractions of the image.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/box_attrs.h"
#include "kernels/detection/priors.h"

namespace interp {
namespace {

constexpr int kInput = 0;
constexpr int kImage = 1;
constexpr int kBoxes = 0;
constexpr int kVariances = 1;

constexpr size_t kMaxPriors = size_t{1} << 20;  // per cell

// 1, then each ratio and (with `flip`) its inverse, without repetition.
std::vector<float> ExpandRatios(const std::vector<float>& ratios, bool flip) {
  std::vector<float> expanded = {1};
  for (const float ratio : ratios) {
    const bool known = std::any_of(expanded.begin(), expanded.end(),
                                   [ratio](float r) { return std::abs(ratio - r) < 1e-6; });
    if (known) continue;
    expanded.push_back(ratio);
    if (flip) expanded.push_back(1 / ratio);
  }
  return expanded;
}

// `big_square_second`: the square of the geometric mean of both sizes follows the small square
// instead of coming last (attribute min_max_aspect_ratios_order).
std::vector<PriorSize> ListSizes(const std::vector<float>& min_sizes,
                                 const std::vector<float>& max_sizes,
                                 const std::vector<float>& ratios, bool big_square_second) {
  std::vector<PriorSize> sizes;
  for (size_t s = 0; s < min_sizes.size(); ++s) {
    const float small = min_sizes[s];
    const size_t first = sizes.size();
    for (const float ratio : ratios) {
      const double root = std::sqrt(ratio);
      sizes.push_back({small * root, small / root});
    }
    if (max_sizes.empty()) continue;
    const double side = std::sqrt(small * max_sizes[s]);
    sizes.insert(big_square_second ? sizes.begin() + first + 1 : sizes.end(), {side, side});
  }
  return sizes;
}

PriorBoxAttrs ReadAttrs(AttrReader& reader) {
  const std::vector<float> min_sizes = reader.Floats("min_sizes");
  const std::vector<float> max_sizes = reader.Floats("max_sizes");
  const std::vector<float> ratios =
      ExpandRatios(reader.Floats("aspect_ratios"), reader.Bool("flip", true));
  PriorBoxAttrs attrs = {.sizes = {},
                         .variances = ReadVariances(reader),
                         .clip = reader.Bool("clip", true),
                         .step_w = reader.Float("step_w", 0),
                         .step_h = reader.Float("step_h", 0),
                         .offset = reader.Float("offset", 0.5)};
  if (min_sizes.empty()) reader.Fail("attribute 'min_sizes' is empty");
  if (!max_sizes.empty() && max_sizes.size() != min_sizes.size()) {
    reader.Fail(absl::StrCat("attribute 'max_sizes' has ", max_sizes.size(),
                             " values, but 'min_sizes' ", min_sizes.size()));
  }
  if (min_sizes.size() * (ratios.size() + 1) > kMaxPriors) {
    reader.Fail("attributes ask for too many boxes per cell");
  }
  if (!reader.status().ok()) return attrs;
  attrs.sizes =
      ListSizes(min_sizes, max_sizes, ratios, reader.Bool("min_max_aspect_ratios_order", false));
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckImageAndFeatures(ctx.input(kInput), ctx.input(kImage)));
  const Shape& features = ctx.input(kInput).shape;
  const Shape shape = {features[2], features[3], std::ssize(ctx.attrs<PriorBoxAttrs>().sizes), 4};
  ctx.SetShape(kBoxes, shape);
  ctx.SetShape(kVariances, shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status PriorBox(KernelContext& ctx) {
  const PriorBoxAttrs& attrs = ctx.attrs<PriorBoxAttrs>();
  Tensor& boxes = ctx.output(kBoxes);
  const Grid<T> grid(ctx.input(kInput).shape, ctx.input(kImage).shape, attrs.step_w, attrs.step_h,
                     attrs.offset);
  T* box = boxes.mutable_data<T>();
  for (int64_t h = 0; h < grid.height; ++h) {
    for (int64_t w = 0; w < grid.width; ++w) {
      for (const PriorSize& size : attrs.sizes) {
        const T half_width = static_cast<T>(size.width / 2);
        const T half_height = static_cast<T>(size.height / 2);
        box[0] = (grid.CenterX(w) - half_width) / grid.image_width;
        box[1] = (grid.CenterY(h) - half_height) / grid.image_height;
        box[2] = (grid.CenterX(w) + half_width) / grid.image_width;
        box[3] = (grid.CenterY(h) + half_height) / grid.image_height;
        box += 4;
      }
    }
  }
  if (attrs.clip) ClipToUnit(boxes.mutable_data<T>(), boxes.numel());
  FillVariances<T>(attrs.variances, ctx.output(kVariances));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "prior_box",
    .inputs = {{"Input", kNoNeedBuffer | kAnyLayout},
               {"Image", kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"Boxes"}, {"Variances"}},
    .parse = ParseAttrs<PriorBoxAttrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, PriorBox<float>}, {DType::kFloat64, PriorBox<double>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
