#include <algorithm>

#include "absl/strings/match.h"
#include "kernels/tensor/interpolate.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr IntSlots kSizes = {
    .name = "out size", .tensor = kInterpOutSize, .list = kInterpSizeTensor};
constexpr int64_t kMostPixels = int64_t{1} << 30;  // per dimension: indices are 32 bits

struct NamedMethod {
  absl::string_view name;
  InterpMethod method;
  int min_rank;
  int max_rank;
};

constexpr NamedMethod kMethods[] = {{"nearest", InterpMethod::kNearest, 4, 5},
                                    {"linear", InterpMethod::kLinear, 3, 3},
                                    {"bilinear", InterpMethod::kLinear, 4, 4},
                                    {"trilinear", InterpMethod::kLinear, 5, 5},
                                    {"bicubic", InterpMethod::kCubic, 4, 4}};

// How to interpolate, and how many dimensions, is what `interp_method` says, whatever the op is
// called, as in Paddle; programs that leave it out have what the op's type says.
void SetMethod(AttrReader& reader, InterpAttrs& attrs) {
  const absl::string_view type = reader.op().type;
  attrs.v2 = absl::StrContains(type, "_v2");
  const std::string name =
      reader.String("interp_method", std::string(type.substr(0, type.find("_interp"))));
  for (const NamedMethod& known : kMethods) {
    if (name != known.name) continue;
    attrs.method = known.method;
    attrs.min_rank = known.min_rank;
    attrs.max_rank = known.max_rank;
    return;
  }
  reader.Fail(absl::StrCat("attribute 'interp_method' is \"", name,
                           "\", expected nearest, linear, bilinear, trilinear or bicubic"));
}

struct Scale {
  float factor[3] = {0, 0, 0};  // 0: none given
};

// Nobody reads the scale beside a SizeTensor, whatever its dtype is.
absl::StatusOr<Scale> ReadScale(const OpContext& ctx, int spatial) {
  if (!ctx.inputs(kSizes.list).empty()) return Scale{};
  const InterpAttrs& attrs = ctx.attrs<InterpAttrs>();
  // Paddle's v2 ops take an attribute with too few values for none.
  const bool usable = !attrs.v2 || attrs.scale.size() >= static_cast<size_t>(spatial);
  absl::Span<const float> values = usable ? attrs.scale : absl::Span<const float>();
  if (const Tensor* tensor = ctx.optional_input(kInterpScale)) {
    if (!tensor->has_memory() || tensor->dtype != DType::kFloat32) {
      return InvalidArgument("'Scale' is ", DescribeType(*tensor), ", expected float32 values");
    }
    values = absl::MakeConstSpan(tensor->data<float>(), tensor->numel());
  }
  Scale scale;
  if (values.empty()) return scale;
  if (values.size() != 1 && values.size() < static_cast<size_t>(spatial)) {
    return InvalidArgument("scale has ", values.size(), " values for ", spatial, " dimensions");
  }
  for (int i = 0; i < spatial; ++i) {
    const float value = values[values.size() == 1 ? 0 : i];
    if (!(value > 0)) return InvalidArgument("scale is ", value, ", expected more than 0");
    scale.factor[3 - spatial + i] = value;
  }
  return scale;
}

// Position of the first spatial dimension in X's shape.
int FirstSpatial(const InterpAttrs& attrs) { return attrs.channels_last ? 1 : 2; }

absl::Status SetSpatial(Shape& shape, int d, double size) {
  if (!(size >= 1 && size <= kMostPixels)) {
    return InvalidArgument("out size is ", size, ", expected 1 to ", kMostPixels);
  }
  shape[d] = static_cast<int64_t>(size);
  return absl::OkStatus();
}

// How the coordinates of spatial dimension `axis` (0: depth) map.
CoordinateMap MapAxis(const InterpAttrs& attrs, const Scale& scale, const ImageView& view,
                      int axis) {
  CoordinateMap map = {.in = view.in[axis], .out = view.out[axis]};
  map.align_corners = attrs.align_corners;
  map.half_pixel = attrs.align_mode == 0 && !attrs.align_corners;
  // As Paddle's kernels round: the first versions in double, of the second bicubic_interp_v2 alone.
  map.in_double = !attrs.v2 || (attrs.method == InterpMethod::kCubic && !attrs.gradient);
  if (map.out <= 1) return map;
  const float factor = scale.factor[axis];
  if (attrs.align_corners) {
    map.ratio = static_cast<float>(map.in - 1) / static_cast<float>(map.out - 1);
  } else if (attrs.v2 && factor > 0) {
    map.ratio = static_cast<float>(1.0 / factor);
  } else {
    map.ratio = static_cast<float>(map.in) / static_cast<float>(map.out);
  }
  return map;
}

}  // namespace

InterpAttrs ReadInterpAttrs(AttrReader& reader) {
  InterpAttrs attrs;
  SetMethod(reader, attrs);
  attrs.gradient = absl::EndsWith(reader.op().type, "_grad");
  const std::string layout = reader.String("data_layout", "NCHW");
  attrs.channels_last = !layout.empty() && layout.back() == 'C';
  attrs.align_corners = reader.Bool("align_corners", true);
  attrs.align_mode = reader.Int("align_mode", 1);
  attrs.size[0] = reader.Int("out_d", 0);
  attrs.size[1] = reader.Int("out_h", 0);
  attrs.size[2] = reader.Int("out_w", 0);
  if (attrs.v2) {
    attrs.scale = reader.Floats("scale");
  } else if (const float scale = reader.Float("scale", 0.0f); scale > 0) {
    attrs.scale = {scale};
  }
  return attrs;
}

absl::StatusOr<Shape> InterpShape(const InferContext& ctx) {
  const InterpAttrs& attrs = ctx.attrs<InterpAttrs>();
  Shape shape = ctx.input(kInterpX).shape;
  if (shape.rank() < attrs.min_rank || shape.rank() > attrs.max_rank) {
    return InvalidArgument("'X' has shape ", ToString(shape), ", expected rank ", attrs.min_rank,
                           attrs.max_rank > attrs.min_rank ? " or more" : "");
  }
  const int spatial = shape.rank() - 2;
  const int first = FirstSpatial(attrs);
  const IntSlots slots = {.name = kSizes.name,
                          .tensor = ctx.inputs(kSizes.list).empty() ? kSizes.tensor : -1,
                          .list = kSizes.list};
  INTERP_ASSIGN_OR_RETURN(const IntList sizes, ReadIntList(ctx, slots, {}));
  if (!sizes.empty() && sizes.size() != static_cast<size_t>(spatial)) {
    return InvalidArgument("out size has ", sizes.size(), " values for ", spatial, " dimensions");
  }
  INTERP_ASSIGN_OR_RETURN(const Scale scale, ReadScale(ctx, spatial));
  for (int i = 0; i < spatial; ++i) {
    const int d = first + i;
    const float factor = scale.factor[3 - spatial + i];
    double size = static_cast<double>(attrs.size[3 - spatial + i]);
    if (factor > 0) size = static_cast<float>(shape[d]) * factor;
    if (!sizes.empty()) size = static_cast<double>(sizes[i]);
    if (shape[d] < 1 || shape[d] > kMostPixels) {
      return InvalidArgument("'X' has shape ", ToString(shape), ", no pixels to resample");
    }
    INTERP_RETURN_IF_ERROR(SetSpatial(shape, d, size));
  }
  return shape;
}

ImageView InterpView(const InterpAttrs& attrs, const Tensor& x, const Shape& out) {
  ImageView view;
  const int rank = x.shape.rank();
  const int64_t channels = x.shape[attrs.channels_last ? rank - 1 : 1];
  const bool inner = attrs.channels_last || x.layout == Layout::kChannelsLast;
  view.outer = x.shape[0] * (inner ? 1 : channels);
  view.inner = inner ? channels : 1;
  for (int i = 0; i < rank - 2; ++i) {
    view.in[5 - rank + i] = x.shape[FirstSpatial(attrs) + i];
    view.out[5 - rank + i] = out[FirstSpatial(attrs) + i];
  }
  return view;
}

absl::Status FillInterpMaps(const OpContext& ctx, const ImageView& view, CoordinateMap (&maps)[3]) {
  INTERP_ASSIGN_OR_RETURN(const Scale scale, ReadScale(ctx, ctx.input(kInterpX).shape.rank() - 2));
  for (int axis = 0; axis < 3; ++axis) {
    maps[axis] = MapAxis(ctx.attrs<InterpAttrs>(), scale, view, axis);
  }
  return absl::OkStatus();
}

template <typename Weight>
absl::Status FillInterpTaps(const OpContext& ctx, const ImageView& view, Taps<Weight> (&taps)[3]) {
  const InterpAttrs& attrs = ctx.attrs<InterpAttrs>();
  CoordinateMap maps[3];
  INTERP_RETURN_IF_ERROR(FillInterpMaps(ctx, view, maps));
  for (int axis = 0; axis < 3; ++axis) {
    const CoordinateMap& map = maps[axis];
    const bool absent = axis == 0 && map.in == 1 && map.out == 1;
    if (absent || attrs.method == InterpMethod::kNearest) {
      NearestTaps(map, taps[axis]);
    } else if (attrs.method == InterpMethod::kLinear) {
      LinearTaps(map, taps[axis]);
    } else {
      CubicTaps(map, taps[axis]);
    }
  }
  return absl::OkStatus();
}

template absl::Status FillInterpTaps<float>(const OpContext&, const ImageView&, Taps<float> (&)[3]);
template absl::Status FillInterpTaps<double>(const OpContext&, const ImageView&,
                                             Taps<double> (&)[3]);

}  // namespace interp
