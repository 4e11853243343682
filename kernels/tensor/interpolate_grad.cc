// The gradients of the interpolation ops (see interpolate.cc): X@GRAD takes from every element of
// Out@GRAD what it gave to it, by the same weights.
#include "kernels/tensor/interpolate.h"
#include "kernels/util/strided_copy.h"
#include "kernels/util/without_lod.h"

namespace interp {
namespace {

constexpr int kOutGrad = 4;
constexpr int kXGrad = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape, InterpShape(ctx));
  if (!(ctx.input(kOutGrad).shape == shape)) {
    return InvalidArgument("'Out@GRAD' has shape ", ToString(ctx.input(kOutGrad).shape),
                           ", expected ", ToString(shape));
  }
  ctx.ShareShape(kInterpX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
struct GradState : KernelState {
  Taps<T> taps[3];
  std::vector<T> scratch;
};

template <typename T>
absl::Status InterpGrad(KernelContext& ctx) {
  Tensor* x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr) return absl::OkStatus();
  const Tensor& out_grad = ctx.input(kOutGrad);
  if (x_grad->shape == out_grad.shape) {
    CopyTensor(ctx.num_threads(), out_grad, *x_grad);
    return absl::OkStatus();
  }
  const ImageView view = InterpView(ctx.attrs<InterpAttrs>(), *x_grad, out_grad.shape);
  auto& state = ctx.state<GradState<T>>();
  INTERP_RETURN_IF_ERROR(FillInterpTaps(ctx, view, state.taps));
  ResampleGradient(ctx.num_threads(), view, state.taps, out_grad.data<T>(),
                   x_grad->mutable_data<T>(), state.scratch);
  return absl::OkStatus();
}

// Images whose dims have the channels last already stay as they are.
LayoutRule LayoutOf(const void* attrs, DType /*kernel*/) {
  return static_cast<const InterpAttrs*>(attrs)->channels_last ? LayoutRule::kPlain
                                                               : LayoutRule::kFollows;
}

OpDef GradDef(absl::string_view type) {
  constexpr int kSizeFlags = kOptional | kAnyDType | kValueInInfer;
  return OpDef{
      .type = type,
      .inputs = {{"X", kNoNeedBuffer},
                 {"OutSize", kSizeFlags},
                 {"SizeTensor", kSizeFlags | kVariadic},
                 {"Scale", kSizeFlags},
                 {"Out@GRAD"}},
      .outputs = {{"X@GRAD", kOptional}},
      .parse = ParseAttrs<InterpAttrs, ReadInterpAttrs>,
      .infer = Infer,
      .kernels = {{DType::kFloat32, InterpGrad<float>}, {DType::kFloat64, InterpGrad<double>}},
      .layout_rule = LayoutOf,
  };
}

// Those before the second versions hand no LoD on.
OpDef OldGradDef(absl::string_view type) {
  OpDef def = GradDef(type);
  def.infer = WithoutLod<Infer, kXGrad>;
  return def;
}

INTERP_REGISTER_OP(OldGradDef("nearest_interp_grad"));
INTERP_REGISTER_OP(GradDef("nearest_interp_v2_grad"));
INTERP_REGISTER_OP(OldGradDef("linear_interp_grad"));
INTERP_REGISTER_OP(GradDef("linear_interp_v2_grad"));
INTERP_REGISTER_OP(OldGradDef("bilinear_interp_grad"));
INTERP_REGISTER_OP(GradDef("bilinear_interp_v2_grad"));
INTERP_REGISTER_OP(OldGradDef("trilinear_interp_grad"));
INTERP_REGISTER_OP(GradDef("trilinear_interp_v2_grad"));
INTERP_REGISTER_OP(OldGradDef("bicubic_interp_grad"));
INTERP_REGISTER_OP(GradDef("bicubic_interp_v2_grad"));

}  // namespace
}  // namespace interp
