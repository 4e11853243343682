// density_prior_box: per cell of a feature map and per fixed size, a square raster of density x
// density box centres, for each of the fixed aspect ratios. Only the shapes of the inputs count.
// Boxes and Variances are [H, W, priors, 4], or [H*W*priors, 4] with flatten_to_2d; boxes are
// fractions of the image.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/priors.h"

namespace interp {
namespace {

constexpr int kInput = 0;
constexpr int kImage = 1;
constexpr int kBoxes = 0;
constexpr int kVariances = 1;

constexpr int64_t kMaxDensity = 1024;
constexpr int64_t kMaxPriors = int64_t{1} << 24;  // per cell

struct DensityAttrs {
  std::vector<float> fixed_sizes, fixed_ratios, variances;
  std::vector<int64_t> densities;
  bool clip, flatten;
  float step_w, step_h, offset;

  int64_t num_priors() const {
    int64_t raster = 0;
    for (const int64_t density : densities) raster += density * density;
    return raster * std::ssize(fixed_ratios);
  }
};

DensityAttrs ReadAttrs(AttrReader& reader) {
  DensityAttrs attrs = {.fixed_sizes = reader.Floats("fixed_sizes"),
                        .fixed_ratios = reader.Floats("fixed_ratios"),
                        .variances = ReadVariances(reader),
                        .densities = reader.Ints("densities"),
                        .clip = reader.Bool("clip", true),
                        .flatten = reader.Bool("flatten_to_2d", false),
                        .step_w = reader.Float("step_w", 0),
                        .step_h = reader.Float("step_h", 0),
                        .offset = reader.Float("offset", 0.5)};
  if (attrs.fixed_sizes.size() != attrs.densities.size()) {
    reader.Fail(absl::StrCat("attribute 'fixed_sizes' has ", attrs.fixed_sizes.size(),
                             " values, but 'densities' ", attrs.densities.size()));
  }
  for (const int64_t density : attrs.densities) {
    if (density < 1 || density > kMaxDensity) {
      reader.Fail(absl::StrCat("attribute 'densities' has the value ", density, ", expected 1 to ",
                               kMaxDensity));
      return attrs;
    }
  }
  if (attrs.num_priors() > kMaxPriors) reader.Fail("attributes ask for too many boxes per cell");
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckImageAndFeatures(ctx.input(kInput), ctx.input(kImage)));
  const DensityAttrs& attrs = ctx.attrs<DensityAttrs>();
  const Shape& features = ctx.input(kInput).shape;
  Shape shape = {features[2], features[3], attrs.num_priors(), 4};
  if (!shape.CheckedNumel().has_value()) {
    return InvalidArgument("boxes of shape ", ToString(shape), " are too many");
  }
  if (attrs.flatten) shape = {shape.numel() / 4, 4};
  ctx.SetShape(kBoxes, shape);
  ctx.SetShape(kVariances, shape);
  return absl::OkStatus();
}

// Writes the boxes of the cell centred at (center_x, center_y); returns the end. Intermediate
// values are floats whatever T is, as in Paddle.
template <typename T>
T* WriteCell(const DensityAttrs& attrs, const Grid<T>& grid, T center_x, T center_y, int step,
             T* box) {
  for (size_t s = 0; s < attrs.fixed_sizes.size(); ++s) {
    const int density = static_cast<int>(attrs.densities[s]);
    const int shift = step / density;
    const float first_x = static_cast<float>(center_x - step / 2. + shift / 2.);
    const float first_y = static_cast<float>(center_y - step / 2. + shift / 2.);
    for (const float ratio : attrs.fixed_ratios) {
      const float root = std::sqrt(ratio);
      const double half_width = attrs.fixed_sizes[s] * root / 2.;
      const double half_height = attrs.fixed_sizes[s] / root / 2.;
      for (int i = 0; i < density * density; ++i, box += 4) {
        const float x = first_x + static_cast<float>(i % density) * static_cast<float>(shift);
        const float y = first_y + static_cast<float>(i / density) * static_cast<float>(shift);
        box[0] = static_cast<T>(std::max((x - half_width) / grid.image_width, 0.));
        box[1] = static_cast<T>(std::max((y - half_height) / grid.image_height, 0.));
        box[2] = static_cast<T>(std::min((x + half_width) / grid.image_width, 1.));
        box[3] = static_cast<T>(std::min((y + half_height) / grid.image_height, 1.));
      }
    }
  }
  return box;
}

template <typename T>
absl::Status DensityPriorBox(KernelContext& ctx) {
  const DensityAttrs& attrs = ctx.attrs<DensityAttrs>();
  Tensor& boxes = ctx.output(kBoxes);
  const Grid<T> grid(ctx.input(kInput).shape, ctx.input(kImage).shape, attrs.step_w, attrs.step_h,
                     attrs.offset);
  const double mean_step = (grid.step_width + grid.step_height) * 0.5;
  if (!(std::abs(mean_step) < 1e9)) return InvalidArgument("the step is ", mean_step, " pixels");
  T* box = boxes.mutable_data<T>();
  for (int64_t h = 0; h < grid.height; ++h) {
    for (int64_t w = 0; w < grid.width; ++w) {
      box = WriteCell(attrs, grid, grid.CenterX(w), grid.CenterY(h), static_cast<int>(mean_step),
                      box);
    }
  }
  if (attrs.clip) ClipToUnit(boxes.mutable_data<T>(), boxes.numel());
  FillVariances<T>(attrs.variances, ctx.output(kVariances));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "density_prior_box",
    .inputs = {{"Input", kNoNeedBuffer | kAnyLayout},
               {"Image", kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"Boxes"}, {"Variances"}},
    .parse = ParseAttrs<DensityAttrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, DensityPriorBox<float>},
                {DType::kFloat64, DensityPriorBox<double>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
