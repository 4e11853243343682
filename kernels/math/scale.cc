// scale: Out = scale X + bias, or scale (X + bias). For integers both numbers are truncated first.
#include "kernels/math/scale.h"

#include "kernels/math/unary.h"
#include "kernels/util/flops.h"

namespace interp {
namespace {

using unary::kOut;
using unary::kX;
constexpr int kScaleTensor = 1;  // one element; wins over the attribute

absl::Status InferScale(InferContext& ctx) {
  const Tensor* scale = ctx.optional_input(kScaleTensor);
  if (scale != nullptr && scale->numel() != 1) {
    return InvalidArgument("input 'ScaleTensor' is ", DescribeType(*scale),
                           ", expected one element");
  }
  return InferUnary(ctx);
}

// scale x + bias
template <typename T>
struct ScaleThenAdd {
  T scale, bias;
  T operator()(T x) const { return WrapAdd(WrapMul(x, scale), bias); }
};

// scale (x + bias)
template <typename T>
struct AddThenScale {
  T scale, bias;
  T operator()(T x) const { return WrapMul(WrapAdd(x, bias), scale); }
};

// Of bool, where numbers that are not 0 are true.
template <>
struct ScaleThenAdd<bool> {
  bool scale, bias;
  bool operator()(bool x) const { return (x && scale) || bias; }
};
template <>
struct AddThenScale<bool> {
  bool scale, bias;
  bool operator()(bool x) const { return (x || bias) && scale; }
};

template <typename T>
absl::Status Scale(KernelContext& ctx) {
  using C = ComputeType<T>;
  const ScaleAttrs& attrs = ctx.attrs<ScaleAttrs>();
  const Tensor* scale_tensor = ctx.optional_input(kScaleTensor);
  const C scale =
      scale_tensor != nullptr ? static_cast<C>(*scale_tensor->data<T>()) : Convert<C>(attrs.scale);
  const C bias = Convert<C>(attrs.bias);
  if (attrs.bias_after_scale) {
    MapUnary<T, T>(ctx, ScaleThenAdd<C>{scale, bias});
  } else {
    MapUnary<T, T>(ctx, AddThenScale<C>{scale, bias});
  }
  return absl::OkStatus();
}

absl::Status MakeGradient(GradientMaker& maker) {
  if (!maker.Wants("X")) return absl::OkStatus();
  Op& scale = maker.Add("scale");
  AddInput(scale, "X", maker.OutputGradients("Out"));
  AddInput(scale, "ScaleTensor", maker.Arguments("ScaleTensor"));
  AddOutput(scale, "Out", maker.InputGradients("X"));
  scale.attrs = maker.op().attrs;
  SetAttr(scale, "bias", 0.0f);
  SetAttr(scale, "bias_after_scale", true);
  return absl::OkStatus();
}

template <typename... Ts>
std::vector<KernelDef> ScaleKernels() {
  return {{DTypeOf<Ts>, WithRows<Scale<Ts>>}...};
}

INTERP_REGISTER_OP(OpDef{
    .type = "scale",
    .inputs = {{"X", kMayBeRows}, {"ScaleTensor", kOptional}},
    .outputs = {{"Out", kMayBeRows}},
    .parse = ParseAttrs<ScaleAttrs, ScaleAttrs::Read>,
    .infer = InferScale,
    .kernels = ScaleKernels<float, double, float16, bfloat16, int32_t, int64_t, int16_t, int8_t,
                            uint8_t, bool, std::complex<float>, std::complex<double>>(),
    .layout = LayoutRule::kFollows,
    .inplace = {{kX, kOut}},
    .gradient = {.make = MakeGradient},
    .flops = FlopsPerElement<2>,
});

}  // namespace
}  // namespace interp
