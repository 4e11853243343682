// Rows of functions of one tensor: activations, roots, exponentials, trigonometry, scale, clip.
#include <limits>

#include "absl/container/inlined_vector.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/row.h"
#include "kernels/math/activation_attrs.h"
#include "kernels/math/clip.h"
#include "kernels/math/increment.h"
#include "kernels/math/pow.h"
#include "kernels/math/scale.h"
#include "kernels/math/unary.h"

namespace interp::cuda {
namespace {

using unary::kOut;
using unary::kX;

using Steps = absl::InlinedVector<ElementwiseStep, 3>;
using StepsOf = Steps (*)(const KernelContext& ctx);

absl::Status RunSteps(KernelContext& ctx, const Steps& steps,
                      std::initializer_list<const void*> scalars = {}) {
  const Tensor& x = ctx.input(kX);
  const int64_t flat[] = {x.numel()};
  const int64_t one[] = {1};
  absl::InlinedVector<ElementwiseOperand, kMaxOperands> operands = {{x.raw_data(), flat}};
  for (const void* scalar : scalars) operands.push_back({scalar, one});
  return Elementwise(x.dtype, steps, operands, flat, ctx.output(kOut).mutable_raw_data(),
                     StreamOf(ctx));
}

template <StepsOf kSteps>
absl::Status Chain(KernelContext& ctx) {
  return RunSteps(ctx, kSteps(ctx));
}

// A function without attributes.
template <ElementwiseOp kOp>
absl::Status Plain(KernelContext& ctx) {
  return RunSteps(ctx, {{.op = kOp}});
}

Steps LeakyRelu(const KernelContext& ctx) {
  return {{.op = ElementwiseOp::kLeakyRelu, .a = ctx.attrs<LeakyReluAttrs>().alpha}};
}
Steps Relu6(const KernelContext& ctx) {
  return {{.op = ElementwiseOp::kClip, .a = 0, .b = ctx.attrs<Relu6Attrs>().threshold}};
}
Steps BRelu(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs<BReluAttrs>();
  return {{.op = ElementwiseOp::kClip, .a = attrs.low, .b = attrs.high}};
}
Steps HardSigmoid(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs<HardSigmoidAttrs>();
  return {{.op = ElementwiseOp::kHardSigmoid, .a = attrs.slope, .b = attrs.offset}};
}
Steps HardShrink(const KernelContext& ctx) {
  return {{.op = ElementwiseOp::kHardShrink, .a = ctx.attrs<HardShrinkAttrs>().threshold}};
}
Steps SoftShrink(const KernelContext& ctx) {
  return {{.op = ElementwiseOp::kSoftShrink, .a = ctx.attrs<SoftShrinkAttrs>().lambda}};
}
Steps ThresholdedRelu(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs<ThresholdedReluAttrs>();
  return {{.op = ElementwiseOp::kThresholdedRelu, .a = attrs.threshold, .b = attrs.value}};
}
Steps STanh(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs<STanhAttrs>();
  return {{.op = ElementwiseOp::kScale, .a = attrs.a},
          {.op = ElementwiseOp::kTanh},
          {.op = ElementwiseOp::kScale, .a = attrs.b}};
}
Steps Elu(const KernelContext& ctx) {
  return {{.op = ElementwiseOp::kElu, .a = ctx.attrs<EluAttrs>().alpha}};
}
Steps Selu(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SeluAttrs>();
  return {{.op = ElementwiseOp::kElu, .a = attrs.alpha},
          {.op = ElementwiseOp::kScale, .a = attrs.scale}};
}
Steps Celu(const KernelContext& ctx) {
  return {{.op = ElementwiseOp::kCelu, .a = ctx.attrs<CeluAttrs>().alpha}};
}
Steps Swish(const KernelContext& ctx) {
  return {{.op = ElementwiseOp::kSwish, .a = ctx.attrs<SwishAttrs>().beta}};
}
Steps Silu(const KernelContext&) { return {{.op = ElementwiseOp::kSwish, .a = 1}}; }
Steps Softplus(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SoftplusAttrs>();
  return {{.op = ElementwiseOp::kSoftplus, .a = attrs.beta, .b = attrs.threshold}};
}
Steps SoftRelu(const KernelContext& ctx) {
  const float limit = ctx.attrs<SoftReluAttrs>().threshold;
  return {{.op = ElementwiseOp::kClip, .a = -limit, .b = limit},
          {.op = ElementwiseOp::kSoftplus, .a = 1, .b = std::numeric_limits<float>::infinity()}};
}
Steps Gelu(const KernelContext& ctx) {
  return {
      {.op = ctx.attrs<GeluAttrs>().approximate ? ElementwiseOp::kGeluTanh : ElementwiseOp::kGelu}};
}
Steps Logit(const KernelContext& ctx) {
  return {{.op = ElementwiseOp::kLogit, .a = ctx.attrs<LogitAttrs>().eps}};
}
Steps Increment(const KernelContext& ctx) {
  return {{.op = ElementwiseOp::kScale, .a = 1, .b = ctx.attrs<IncrementAttrs>().step}};
}

// From thresholds of 20 on tanh is 1 above them.
bool HasFarThreshold(const void* attrs) {
  return static_cast<const MishAttrs*>(attrs)->threshold >= 20.0f;
}

absl::Status Pow(KernelContext& ctx) {
  if (const Tensor* const factor = ctx.optional_input(/*slot=*/1)) {
    return RunSteps(ctx, {{.op = ElementwiseOp::kPow, .operand = 1}}, {factor->raw_data()});
  }
  return RunSteps(ctx, {{.op = ElementwiseOp::kPower, .a = ctx.attrs<PowAttrs>().factor}});
}

// The scale may be a number that lies on the device.
absl::Status Scale(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<ScaleAttrs>();
  const ElementwiseStep bias = {.op = ElementwiseOp::kScale, .a = 1, .b = attrs.bias};
  if (const Tensor* const scale = ctx.optional_input(/*slot=*/1)) {
    const ElementwiseStep factor = {.op = ElementwiseOp::kMul, .operand = 1};
    const Steps steps = attrs.bias_after_scale ? Steps{factor, bias} : Steps{bias, factor};
    return RunSteps(ctx, steps, {scale->raw_data()});
  }
  if (attrs.bias_after_scale) {
    return RunSteps(ctx, {{.op = ElementwiseOp::kScale, .a = attrs.scale, .b = attrs.bias}});
  }
  return RunSteps(ctx, {bias, {.op = ElementwiseOp::kScale, .a = attrs.scale}});
}

// So may the bounds; nobody looks whether those are in order then. Swapped, so that NaN stays NaN.
absl::Status Clip(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<ClipAttrs>();
  const Tensor* const low = ctx.optional_input(/*slot=*/1);
  const Tensor* const high = ctx.optional_input(/*slot=*/2);
  if (low == nullptr && high == nullptr && attrs.min > attrs.max) {
    return InvalidArgument("min is ", attrs.min, " and max is ", attrs.max,
                           ", expected min to be at most max");
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const ElementwiseStep by_attrs = {
      .op = ElementwiseOp::kClip,
      .a = low == nullptr ? static_cast<float>(attrs.min) : -kInfinity,
      .b = high == nullptr ? static_cast<float>(attrs.max) : kInfinity};
  const ElementwiseStep at_least = {.op = ElementwiseOp::kMax, .operand = 1, .swapped = true};
  if (low == nullptr && high == nullptr) return RunSteps(ctx, {by_attrs});
  if (high == nullptr) return RunSteps(ctx, {at_least, by_attrs}, {low->raw_data()});
  if (low == nullptr) {
    return RunSteps(ctx, {by_attrs, {.op = ElementwiseOp::kMin, .operand = 1, .swapped = true}},
                    {high->raw_data()});
  }
  return RunSteps(ctx, {at_least, {.op = ElementwiseOp::kMin, .operand = 2, .swapped = true}},
                  {low->raw_data(), high->raw_data()});
}

// The dtypes that the host has, too.
constexpr std::initializer_list<DType> kActivations = {DType::kFloat32, DType::kFloat64,
                                                       DType::kFloat16, DType::kBFloat16};
constexpr std::initializer_list<DType> kFunctions = {DType::kFloat32, DType::kFloat64,
                                                     DType::kFloat16};
constexpr std::initializer_list<DType> kNumbers = {DType::kFloat32, DType::kFloat64,
                                                   DType::kFloat16, DType::kInt32, DType::kInt64};

INTERP_REGISTER_KERNELS("relu", RowsFor(kActivations, Plain<ElementwiseOp::kRelu>));
INTERP_REGISTER_KERNELS("relu6", RowsFor(kActivations, Chain<Relu6>));
INTERP_REGISTER_KERNELS("leaky_relu", RowsFor(kActivations, Chain<LeakyRelu>));
INTERP_REGISTER_KERNELS("brelu", RowsFor(kFunctions, Chain<BRelu>));
INTERP_REGISTER_KERNELS("hard_sigmoid", RowsFor(kActivations, Chain<HardSigmoid>));
INTERP_REGISTER_KERNELS("hard_swish", RowsFor(kActivations, Plain<ElementwiseOp::kHardSwish>));
INTERP_REGISTER_KERNELS("hard_shrink", RowsFor(kFunctions, Chain<HardShrink>));
INTERP_REGISTER_KERNELS("softshrink", RowsFor(kFunctions, Chain<SoftShrink>));
INTERP_REGISTER_KERNELS("thresholded_relu", RowsFor(kFunctions, Chain<ThresholdedRelu>));
INTERP_REGISTER_KERNELS("sigmoid", RowsFor(kActivations, Plain<ElementwiseOp::kSigmoid>));
INTERP_REGISTER_KERNELS("logsigmoid", RowsFor(kFunctions, Plain<ElementwiseOp::kLogSigmoid>));
INTERP_REGISTER_KERNELS("tanh", RowsFor(kActivations, Plain<ElementwiseOp::kTanh>));
INTERP_REGISTER_KERNELS("tanh_shrink", RowsFor(kFunctions, Plain<ElementwiseOp::kTanhShrink>));
INTERP_REGISTER_KERNELS("stanh", RowsFor(kFunctions, Chain<STanh>));
INTERP_REGISTER_KERNELS("elu", RowsFor(kActivations, Chain<Elu>));
INTERP_REGISTER_KERNELS("selu", RowsFor(kFunctions, Chain<Selu>));
INTERP_REGISTER_KERNELS("celu", RowsFor(kFunctions, Chain<Celu>));
INTERP_REGISTER_KERNELS("swish", RowsFor(kActivations, Chain<Swish>));
INTERP_REGISTER_KERNELS("silu", RowsFor(kActivations, Chain<Silu>));
INTERP_REGISTER_KERNELS("softplus", RowsFor(kFunctions, Chain<Softplus>));
INTERP_REGISTER_KERNELS("soft_relu", RowsFor(kFunctions, Chain<SoftRelu>));
INTERP_REGISTER_KERNELS("softsign", RowsFor(kFunctions, Plain<ElementwiseOp::kSoftsign>));
INTERP_REGISTER_KERNELS("mish",
                        RowsFor(kActivations, Plain<ElementwiseOp::kMish>, HasFarThreshold));
INTERP_REGISTER_KERNELS("gelu", RowsFor(kActivations, Chain<Gelu>));

INTERP_REGISTER_KERNELS("sqrt", RowsFor(kFunctions, Plain<ElementwiseOp::kSqrt>));
INTERP_REGISTER_KERNELS("rsqrt", RowsFor(kFunctions, Plain<ElementwiseOp::kRsqrt>));
INTERP_REGISTER_KERNELS("reciprocal", RowsFor(kFunctions, Plain<ElementwiseOp::kReciprocal>));
INTERP_REGISTER_KERNELS("ceil", RowsFor(kFunctions, Plain<ElementwiseOp::kCeil>));
INTERP_REGISTER_KERNELS("floor", RowsFor(kFunctions, Plain<ElementwiseOp::kFloor>));
INTERP_REGISTER_KERNELS("round", RowsFor(kFunctions, Plain<ElementwiseOp::kRound>));
INTERP_REGISTER_KERNELS("square", RowsFor(kNumbers, Plain<ElementwiseOp::kSquare>));
INTERP_REGISTER_KERNELS("abs", RowsFor(kNumbers, Plain<ElementwiseOp::kAbs>));
INTERP_REGISTER_KERNELS("trunc", RowsFor(kNumbers, Plain<ElementwiseOp::kTrunc>));
INTERP_REGISTER_KERNELS("sign", RowsFor(kNumbers, Plain<ElementwiseOp::kSign>));
INTERP_REGISTER_KERNELS("pow", RowsFor(kFunctions, Pow));

INTERP_REGISTER_KERNELS("exp", RowsFor(kFunctions, Plain<ElementwiseOp::kExp>));
INTERP_REGISTER_KERNELS("expm1", RowsFor(kFunctions, Plain<ElementwiseOp::kExpm1>));
INTERP_REGISTER_KERNELS("log", RowsFor(kFunctions, Plain<ElementwiseOp::kLog>));
INTERP_REGISTER_KERNELS("log2", RowsFor(kFunctions, Plain<ElementwiseOp::kLog2>));
INTERP_REGISTER_KERNELS("log10", RowsFor(kFunctions, Plain<ElementwiseOp::kLog10>));
INTERP_REGISTER_KERNELS("log1p", RowsFor(kFunctions, Plain<ElementwiseOp::kLog1p>));
INTERP_REGISTER_KERNELS("erf", RowsFor(kFunctions, Plain<ElementwiseOp::kErf>));
INTERP_REGISTER_KERNELS("logit", RowsFor(kFunctions, Chain<Logit>));

INTERP_REGISTER_KERNELS("sin", RowsFor(kFunctions, Plain<ElementwiseOp::kSin>));
INTERP_REGISTER_KERNELS("cos", RowsFor(kFunctions, Plain<ElementwiseOp::kCos>));
INTERP_REGISTER_KERNELS("tan", RowsFor(kFunctions, Plain<ElementwiseOp::kTan>));
INTERP_REGISTER_KERNELS("asin", RowsFor(kFunctions, Plain<ElementwiseOp::kAsin>));
INTERP_REGISTER_KERNELS("acos", RowsFor(kFunctions, Plain<ElementwiseOp::kAcos>));
INTERP_REGISTER_KERNELS("atan", RowsFor(kFunctions, Plain<ElementwiseOp::kAtan>));
INTERP_REGISTER_KERNELS("sinh", RowsFor(kFunctions, Plain<ElementwiseOp::kSinh>));
INTERP_REGISTER_KERNELS("cosh", RowsFor(kFunctions, Plain<ElementwiseOp::kCosh>));
INTERP_REGISTER_KERNELS("asinh", RowsFor(kFunctions, Plain<ElementwiseOp::kAsinh>));
INTERP_REGISTER_KERNELS("acosh", RowsFor(kFunctions, Plain<ElementwiseOp::kAcosh>));
INTERP_REGISTER_KERNELS("atanh", RowsFor(kFunctions, Plain<ElementwiseOp::kAtanh>));

INTERP_REGISTER_KERNELS("scale", RowsFor({DType::kFloat32, DType::kFloat64, DType::kFloat16,
                                          DType::kBFloat16, DType::kInt32, DType::kInt64},
                                         Scale));
INTERP_REGISTER_KERNELS("clip", RowsFor(kFunctions, Clip));
INTERP_REGISTER_KERNELS("increment",
                        RowsFor({DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64},
                                Chain<Increment>));

}  // namespace
}  // namespace interp::cuda
