// nearest_interp, linear_interp, bilinear_interp, trilinear_interp, bicubic_interp and their _v2
// forms: Out = the images X resampled to another size.
//
// The size is taken from the first of: SizeTensor (a list of numbers), OutSize (one tensor), Scale
// (a tensor), attribute `scale`, attributes out_d, out_h, out_w. In the _v2 forms a scale also sets
// the ratio between coordinates, even when the size comes from OutSize.
#include "absl/strings/match.h"
#include "core/op_def.h"
#include "kernels/tensor/resample.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kScale = 3;
constexpr int kOut = 0;
constexpr IntSlots kSizes = {.name = "out size", .tensor = 1, .list = 2};
constexpr int64_t kMostPixels = int64_t{1} << 30;  // per dimension: indices are 32 bits

enum class Method { kNearest, kLinear, kCubic };

struct InterpAttrs {
  Method method = Method::kNearest;
  int min_rank = 4;
  int max_rank = 5;
  bool v2 = false;
  bool channels_last = false;  // logically: the shape itself is N, spatial, C
  bool align_corners = true;
  int64_t align_mode = 1;
  int64_t size[3] = {0, 0, 0};  // out_d, out_h, out_w
  std::vector<float> scale;
};

// The op's type says how to interpolate and how many dimensions.
void SetMethod(absl::string_view type, InterpAttrs& attrs) {
  const auto set = [&attrs](Method method, int min_rank, int max_rank) {
    attrs.method = method;
    attrs.min_rank = min_rank;
    attrs.max_rank = max_rank;
  };
  attrs.v2 = absl::EndsWith(type, "_v2");
  if (absl::StartsWith(type, "nearest")) set(Method::kNearest, 4, 5);
  if (absl::StartsWith(type, "linear")) set(Method::kLinear, 3, 3);
  if (absl::StartsWith(type, "bilinear")) set(Method::kLinear, 4, 4);
  if (absl::StartsWith(type, "trilinear")) set(Method::kLinear, 5, 5);
  if (absl::StartsWith(type, "bicubic")) set(Method::kCubic, 4, 4);
}

InterpAttrs ReadInterpAttrs(AttrReader& reader) {
  InterpAttrs attrs;
  SetMethod(reader.op().type, attrs);
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

struct Scale {
  float factor[3] = {0, 0, 0};  // 0: none given
};

absl::StatusOr<Scale> ReadScale(const OpContext& ctx, int spatial) {
  const InterpAttrs& attrs = ctx.attrs<InterpAttrs>();
  absl::Span<const float> values = attrs.scale;
  if (const Tensor* tensor = ctx.optional_input(kScale)) {
    if (!tensor->has_memory() || tensor->dtype != DType::kFloat32) {
      return InvalidArgument("'Scale' is ", DescribeType(*tensor), ", expected float32 values");
    }
    values = absl::MakeConstSpan(tensor->data<float>(), tensor->numel());
  }
  Scale scale;
  if (values.empty() || !ctx.inputs(kSizes.list).empty()) return scale;
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

absl::Status InferInterp(InferContext& ctx) {
  const InterpAttrs& attrs = ctx.attrs<InterpAttrs>();
  Shape shape = ctx.input(kX).shape;
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
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

// How the coordinates of spatial dimension `axis` (0: depth) map.
CoordinateMap MapAxis(const InterpAttrs& attrs, const Scale& scale, const ImageView& view,
                      int axis) {
  CoordinateMap map = {.in = view.in[axis], .out = view.out[axis]};
  map.align_corners = attrs.align_corners;
  map.half_pixel = attrs.align_mode == 0 && !attrs.align_corners;
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

template <typename Weight>
struct InterpState : KernelState {
  Taps<Weight> taps[3];
  std::vector<Weight> scratch;
};

template <typename Weight>
void FillTaps(const InterpAttrs& attrs, const Scale& scale, const ImageView& view,
              InterpState<Weight>& state) {
  for (int axis = 0; axis < 3; ++axis) {
    const CoordinateMap map = MapAxis(attrs, scale, view, axis);
    const bool absent = axis == 0 && map.in == 1 && map.out == 1;
    if (absent || attrs.method == Method::kNearest) {
      NearestTaps(map, state.taps[axis]);
    } else if (attrs.method == Method::kLinear) {
      LinearTaps(map, state.taps[axis]);
    } else {
      CubicTaps(map, state.taps[axis]);
    }
  }
}

ImageView MakeView(const InterpAttrs& attrs, const Tensor& x, const Tensor& out) {
  ImageView view;
  const int rank = x.shape.rank();
  const int64_t channels = x.shape[attrs.channels_last ? rank - 1 : 1];
  const bool inner = attrs.channels_last || x.layout == Layout::kChannelsLast;
  view.outer = x.shape[0] * (inner ? 1 : channels);
  view.inner = inner ? channels : 1;
  for (int i = 0; i < rank - 2; ++i) {
    view.in[5 - rank + i] = x.shape[FirstSpatial(attrs) + i];
    view.out[5 - rank + i] = out.shape[FirstSpatial(attrs) + i];
  }
  return view;
}

// REQUIRES: not both channels-last logically and in memory.
template <typename T, typename Weight>
absl::Status Resample(KernelContext& ctx, const Tensor& x, Tensor& out) {
  const InterpAttrs& attrs = ctx.attrs<InterpAttrs>();
  if (x.shape == out.shape) {
    CopyTensor(ctx.num_threads(), x, out);
    return absl::OkStatus();
  }
  INTERP_ASSIGN_OR_RETURN(const Scale scale, ReadScale(ctx, x.shape.rank() - 2));
  const ImageView view = MakeView(attrs, x, out);
  auto& state = ctx.state<InterpState<Weight>>();
  FillTaps(attrs, scale, view, state);
  if constexpr (std::is_void_v<T>) {
    ResampleNearest(ctx.num_threads(), view, state.taps, SizeOf(x.dtype), x.raw_data(),
                    out.mutable_raw_data());
  } else {
    ResampleBlend(ctx.num_threads(), view, state.taps, x.data<T>(), out.mutable_data<T>(),
                  state.scratch);
  }
  return absl::OkStatus();
}

// T is void for nearest neighbours, which are copied whatever they are.
template <typename T, typename Weight>
absl::Status Interp(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  const bool strange = ctx.attrs<InterpAttrs>().channels_last && x.layout == Layout::kChannelsLast;
  if (!strange) return Resample<T, Weight>(ctx, x, out);
  // An NHWC op behind NCHW ops that chose channels-last memory: its own channels are not the last.
  INTERP_ASSIGN_OR_RETURN(const Tensor plain_x, x.Clone(ctx.allocator()));
  Tensor plain_out;
  plain_out.shape = out.shape;
  plain_out.dtype = out.dtype;
  INTERP_RETURN_IF_ERROR(ctx.Allocate(plain_out));
  const absl::Status status = Resample<T, Weight>(ctx, plain_x, plain_out);
  if (status.ok()) CopyTensor(ctx.num_threads(), plain_out, out);
  return status;
}

OpDef InterpDef(absl::string_view type, std::vector<KernelDef> kernels) {
  return OpDef{
      .type = type,
      .inputs = {{"X"},
                 {"OutSize", kOptional | kAnyDType | kValueInInfer},
                 {"SizeTensor", kOptional | kVariadic | kAnyDType | kValueInInfer},
                 {"Scale", kOptional | kAnyDType | kValueInInfer}},
      .outputs = {{"Out"}},
      .parse = ParseAttrs<InterpAttrs, ReadInterpAttrs>,
      .infer = InferInterp,
      .kernels = std::move(kernels),
      .layout = LayoutRule::kFollows,
  };
}

std::vector<KernelDef> NearestKernels() { return {{DType::kUndefined, Interp<void, float>}}; }

std::vector<KernelDef> CubicKernels() {
  return {{DType::kFloat32, Interp<float, float>},
          {DType::kFloat64, Interp<double, double>},
          {DType::kFloat16, Interp<float16, float>}};
}

std::vector<KernelDef> LinearKernels() {
  std::vector<KernelDef> kernels = CubicKernels();
  kernels.push_back({DType::kUInt8, Interp<uint8_t, float>});
  return kernels;
}

INTERP_REGISTER_OP(InterpDef("nearest_interp", NearestKernels()));
INTERP_REGISTER_OP(InterpDef("nearest_interp_v2", NearestKernels()));
INTERP_REGISTER_OP(InterpDef("linear_interp", LinearKernels()));
INTERP_REGISTER_OP(InterpDef("linear_interp_v2", LinearKernels()));
INTERP_REGISTER_OP(InterpDef("bilinear_interp", LinearKernels()));
INTERP_REGISTER_OP(InterpDef("bilinear_interp_v2", LinearKernels()));
INTERP_REGISTER_OP(InterpDef("trilinear_interp", LinearKernels()));
INTERP_REGISTER_OP(InterpDef("trilinear_interp_v2", LinearKernels()));
INTERP_REGISTER_OP(InterpDef("bicubic_interp", CubicKernels()));
INTERP_REGISTER_OP(InterpDef("bicubic_interp_v2", CubicKernels()));

}  // namespace
}  // namespace interp
