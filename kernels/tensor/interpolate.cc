// nearest_interp, linear_interp, bilinear_interp, trilinear_interp, bicubic_interp and their _v2
// forms: Out = the images X resampled to another size.
//
// The size is taken from the first of: SizeTensor (a list of numbers), OutSize (one tensor), Scale
// (a tensor), attribute `scale`, attributes out_d, out_h, out_w. In the _v2 forms a scale also sets
// the ratio between coordinates, even when the size comes from OutSize.
#include "kernels/tensor/interpolate.h"

#include "core/op_def.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kOut = 0;

absl::Status InferInterp(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape, InterpShape(ctx));
  ctx.SetShape(kOut, shape);
  // Paddle hands a LoD on with OutSize alone.
  constexpr int kOutSize = 1;
  if (ctx.has_input(kOutSize)) ctx.output(kOut).lod = ctx.input(kInterpX).lod;
  return absl::OkStatus();
}

template <typename Weight>
struct InterpState : KernelState {
  Taps<Weight> taps[3];
  std::vector<Weight> scratch;
};

// REQUIRES: not both channels-last logically and in memory.
// T is void for what has no arithmetic; the method is nearest then.
template <typename T, typename Weight>
absl::Status Resample(KernelContext& ctx, const Tensor& x, Tensor& out) {
  const InterpAttrs& attrs = ctx.attrs<InterpAttrs>();
  if (x.shape == out.shape) {
    CopyTensor(ctx.num_threads(), x, out);
    return absl::OkStatus();
  }
  const ImageView view = InterpView(attrs, x, out.shape);
  // Nearest neighbours are copied whatever they are.
  if (attrs.method == InterpMethod::kNearest) {
    auto& state = ctx.state<InterpState<float>>();
    INTERP_RETURN_IF_ERROR(FillInterpTaps(ctx, view, state.taps));
    ResampleNearest(ctx.num_threads(), view, state.taps, SizeOf(x.dtype), x.raw_data(),
                    out.mutable_raw_data());
    return absl::OkStatus();
  }
  if constexpr (!std::is_void_v<T>) {
    auto& state = ctx.state<InterpState<Weight>>();
    INTERP_RETURN_IF_ERROR(FillInterpTaps(ctx, view, state.taps));
    ResampleBlend(ctx.num_threads(), view, state.taps, x.data<T>(), out.mutable_data<T>(),
                  state.scratch);
  }
  return absl::OkStatus();
}

template <typename T, typename Weight>
absl::Status Interp(KernelContext& ctx) {
  const Tensor& x = ctx.input(kInterpX);
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
      .gradient = {.inputs = {"X", "OutSize", "SizeTensor", "Scale", "Out@GRAD"},
                   .outputs = {"X@GRAD"}},
  };
}

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

bool IsNearest(const void* attrs) {
  return static_cast<const InterpAttrs*>(attrs)->method == InterpMethod::kNearest;
}

// The attribute `interp_method` may ask for another method than the op's name says.
std::vector<KernelDef> NearestKernels() {
  return {{DType::kFloat32, Interp<float, float>},
          {DType::kFloat64, Interp<double, double>},
          {.dtype = DType::kUndefined, .run = Interp<void, float>, .takes = IsNearest}};
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
