// Rows of the gradients of functions of one value.
#include <type_traits>

#include "kernels/cuda/row.h"
#include "kernels/cuda/unary_grad.h"
#include "kernels/math/activation_attrs.h"
#include "kernels/math/clip.h"
#include "kernels/math/pow.h"
#include "kernels/math/unary_grad.h"
#include "kernels/util/data_or_null.h"

namespace interp::cuda {
namespace {

using Op = UnaryGradientOp;
using unary_grad::kOut;
using unary_grad::kOutGrad;
using unary_grad::kX;
using unary_grad::kXGrad;

// The numbers of the functions' attributes, which the attributes of the gradients start with.
struct Numbers {
  float a = 0;
  float b = 0;
};
struct NoAttrs {};
Numbers NumbersOf(const Relu6Attrs& attrs) { return {attrs.threshold}; }
Numbers NumbersOf(const LeakyReluAttrs& attrs) { return {attrs.alpha}; }
Numbers NumbersOf(const BReluAttrs& attrs) { return {attrs.low, attrs.high}; }
Numbers NumbersOf(const HardSigmoidAttrs& attrs) { return {attrs.slope}; }
Numbers NumbersOf(const HardShrinkAttrs& attrs) { return {attrs.threshold}; }
Numbers NumbersOf(const SoftShrinkAttrs& attrs) { return {attrs.lambda}; }
Numbers NumbersOf(const ThresholdedReluAttrs& attrs) { return {attrs.threshold}; }
Numbers NumbersOf(const STanhAttrs& attrs) { return {attrs.a, attrs.b}; }
Numbers NumbersOf(const EluAttrs& attrs) { return {attrs.alpha}; }
Numbers NumbersOf(const SeluAttrs& attrs) { return {attrs.alpha, attrs.scale}; }
Numbers NumbersOf(const CeluAttrs& attrs) { return {attrs.alpha}; }
Numbers NumbersOf(const SwishAttrs& attrs) { return {attrs.beta}; }
Numbers NumbersOf(const SoftplusAttrs& attrs) { return {attrs.beta, attrs.threshold}; }
Numbers NumbersOf(const SoftReluAttrs& attrs) { return {attrs.threshold}; }
Numbers NumbersOf(const MishAttrs& attrs) { return {attrs.threshold}; }
Numbers NumbersOf(const LogitAttrs& attrs) { return {attrs.eps}; }
Numbers NumbersOf(const PowAttrs& attrs) { return {attrs.factor}; }
Numbers NumbersOf(const ClipAttrs& attrs) {
  return {static_cast<float>(attrs.min), static_cast<float>(attrs.max)};
}

UnaryGradientArguments ArgumentsOf(const KernelContext& ctx, Op op, int value) {
  return {.op = op,
          .value = ctx.input(value).raw_data(),
          .out_grad = ctx.input(kOutGrad).raw_data(),
          .x_grad = ctx.output(kXGrad).mutable_raw_data(),
          .size = ctx.output(kXGrad).numel()};
}

absl::Status Run(const KernelContext& ctx, const UnaryGradientArguments& args) {
  return UnaryGradient(ctx.output(kXGrad).dtype, args, StreamOf(ctx));
}

template <Op kOp, int kValue, typename Attrs = NoAttrs>
absl::Status Row(KernelContext& ctx) {
  UnaryGradientArguments args = ArgumentsOf(ctx, kOp, kValue);
  if constexpr (!std::is_same_v<Attrs, NoAttrs>) {
    const Numbers numbers = NumbersOf(ctx.attrs<Attrs>());
    args.a = numbers.a;
    args.b = numbers.b;
  }
  return Run(ctx, args);
}

absl::Status GeluRow(KernelContext& ctx) {
  const bool approximate = ctx.attrs<GeluAttrs>().approximate;
  return Run(ctx, ArgumentsOf(ctx, approximate ? Op::kGeluTanh : Op::kGelu, kX));
}

absl::Status SiluRow(KernelContext& ctx) {
  UnaryGradientArguments args = ArgumentsOf(ctx, Op::kSwish, kX);
  args.a = 1;
  return Run(ctx, args);
}

// Numbers of pow and clip may be tensors, in the slots after Out@GRAD.
template <Op kOp, int kTensors, typename Attrs>
absl::Status RowOfTensors(KernelContext& ctx) {
  UnaryGradientArguments args = ArgumentsOf(ctx, kOp, kX);
  const Numbers numbers = NumbersOf(ctx.attrs<Attrs>());
  args.a = numbers.a;
  args.b = numbers.b;
  args.a_data = InputOrNull(ctx, kOutGrad + 1);
  if constexpr (kTensors == 2) args.b_data = InputOrNull(ctx, kOutGrad + 2);
  return Run(ctx, args);
}

std::vector<KernelDef> Float32(KernelFn run) { return RowsFor({DType::kFloat32}, run); }
std::vector<KernelDef> Activation(KernelFn run) {
  return RowsFor({DType::kFloat32, DType::kBFloat16}, run);
}

INTERP_REGISTER_KERNELS("relu_grad", Activation(Row<Op::kRelu, kOut>));
INTERP_REGISTER_KERNELS("relu6_grad", Activation(Row<Op::kRelu6, kOut, Relu6Attrs>));
INTERP_REGISTER_KERNELS("leaky_relu_grad", Activation(Row<Op::kLeakyRelu, kX, LeakyReluAttrs>));
INTERP_REGISTER_KERNELS("brelu_grad", Float32(Row<Op::kBRelu, kX, BReluAttrs>));
INTERP_REGISTER_KERNELS("hard_sigmoid_grad",
                        Activation(Row<Op::kHardSigmoid, kOut, HardSigmoidAttrs>));
INTERP_REGISTER_KERNELS("hard_swish_grad", Activation(Row<Op::kHardSwish, kX>));
INTERP_REGISTER_KERNELS("hard_shrink_grad", Float32(Row<Op::kHardShrink, kX, HardShrinkAttrs>));
INTERP_REGISTER_KERNELS("softshrink_grad", Float32(Row<Op::kHardShrink, kX, SoftShrinkAttrs>));
INTERP_REGISTER_KERNELS("thresholded_relu_grad",
                        Float32(Row<Op::kThresholdedRelu, kX, ThresholdedReluAttrs>));
INTERP_REGISTER_KERNELS("sigmoid_grad", Activation(Row<Op::kSigmoid, kOut>));
INTERP_REGISTER_KERNELS("logsigmoid_grad", Float32(Row<Op::kLogSigmoid, kX>));
INTERP_REGISTER_KERNELS("tanh_grad", Activation(Row<Op::kTanh, kOut>));
INTERP_REGISTER_KERNELS("tanh_shrink_grad", Float32(Row<Op::kTanhShrink, kX>));
INTERP_REGISTER_KERNELS("stanh_grad", Float32(Row<Op::kSTanh, kX, STanhAttrs>));
INTERP_REGISTER_KERNELS("elu_grad", Activation(Row<Op::kElu, kX, EluAttrs>));
INTERP_REGISTER_KERNELS("selu_grad", Float32(Row<Op::kSelu, kOut, SeluAttrs>));
INTERP_REGISTER_KERNELS("celu_grad", Float32(Row<Op::kCelu, kX, CeluAttrs>));
INTERP_REGISTER_KERNELS("swish_grad", Activation(Row<Op::kSwish, kX, SwishAttrs>));
INTERP_REGISTER_KERNELS("silu_grad", Activation(SiluRow));
INTERP_REGISTER_KERNELS("softplus_grad", Float32(Row<Op::kSoftplus, kX, SoftplusAttrs>));
INTERP_REGISTER_KERNELS("soft_relu_grad", Float32(Row<Op::kSoftRelu, kOut, SoftReluAttrs>));
INTERP_REGISTER_KERNELS("softsign_grad", Float32(Row<Op::kSoftsign, kX>));
INTERP_REGISTER_KERNELS("mish_grad", Activation(Row<Op::kMish, kX, MishAttrs>));
INTERP_REGISTER_KERNELS("gelu_grad", Activation(GeluRow));

INTERP_REGISTER_KERNELS("sqrt_grad", Float32(Row<Op::kSqrt, kOut>));
INTERP_REGISTER_KERNELS("rsqrt_grad", Float32(Row<Op::kRsqrt, kOut>));
INTERP_REGISTER_KERNELS("square_grad", Float32(Row<Op::kSquare, kX>));
INTERP_REGISTER_KERNELS("reciprocal_grad", Float32(Row<Op::kReciprocal, kOut>));
INTERP_REGISTER_KERNELS("abs_grad", Float32(Row<Op::kAbs, kX>));
INTERP_REGISTER_KERNELS("ceil_grad", Float32(Row<Op::kZero, kOutGrad>));
INTERP_REGISTER_KERNELS("floor_grad", Float32(Row<Op::kZero, kOutGrad>));
INTERP_REGISTER_KERNELS("round_grad", Float32(Row<Op::kZero, kOutGrad>));
INTERP_REGISTER_KERNELS("trunc_grad", Float32(Row<Op::kZero, kOutGrad>));

INTERP_REGISTER_KERNELS("exp_grad", Float32(Row<Op::kExp, kOut>));
INTERP_REGISTER_KERNELS("expm1_grad", Float32(Row<Op::kExpm1, kOut>));
INTERP_REGISTER_KERNELS("log_grad", Float32(Row<Op::kLog, kX>));
INTERP_REGISTER_KERNELS("log2_grad", Float32(Row<Op::kLog2, kX>));
INTERP_REGISTER_KERNELS("log10_grad", Float32(Row<Op::kLog10, kX>));
INTERP_REGISTER_KERNELS("log1p_grad", Float32(Row<Op::kLog1p, kX>));
INTERP_REGISTER_KERNELS("erf_grad", Float32(Row<Op::kErf, kX>));
INTERP_REGISTER_KERNELS("logit_grad", Float32(Row<Op::kLogit, kX, LogitAttrs>));

INTERP_REGISTER_KERNELS("sin_grad", Float32(Row<Op::kSin, kX>));
INTERP_REGISTER_KERNELS("cos_grad", Float32(Row<Op::kCos, kX>));
INTERP_REGISTER_KERNELS("tan_grad", Float32(Row<Op::kTan, kX>));
INTERP_REGISTER_KERNELS("asin_grad", Float32(Row<Op::kAsin, kX>));
INTERP_REGISTER_KERNELS("acos_grad", Float32(Row<Op::kAcos, kX>));
INTERP_REGISTER_KERNELS("atan_grad", Float32(Row<Op::kAtan, kX>));
INTERP_REGISTER_KERNELS("sinh_grad", Float32(Row<Op::kSinh, kX>));
INTERP_REGISTER_KERNELS("cosh_grad", Float32(Row<Op::kCosh, kX>));
INTERP_REGISTER_KERNELS("asinh_grad", Float32(Row<Op::kAsinh, kX>));
INTERP_REGISTER_KERNELS("acosh_grad", Float32(Row<Op::kAcosh, kX>));
INTERP_REGISTER_KERNELS("atanh_grad", Float32(Row<Op::kAtanh, kX>));

INTERP_REGISTER_KERNELS("pow_grad", Float32(RowOfTensors<Op::kPow, 1, PowAttrs>));
INTERP_REGISTER_KERNELS("clip_grad", Float32(RowOfTensors<Op::kBRelu, 2, ClipAttrs>));

}  // namespace
}  // namespace interp::cuda
