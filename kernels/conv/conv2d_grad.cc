// conv2d_grad, depthwise_conv2d_grad, conv3d_grad: the gradients of a convolution by its input, its
// filter and its bias.
#include "kernels/conv/conv_grad.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/util/flush_denormals.h"
#include "kernels/util/second_gradient_slots.h"

namespace interp::nn {
namespace {

absl::StatusOr<ConvProblem> Resolve(const OpContext& ctx) {
  return ResolveConv(ctx.attrs<ConvAttrs>(), ctx.input(kConvInput).shape,
                     ctx.input(kConvFilter).shape);
}

absl::Status Infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<ConvAttrs>();
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem, Resolve(ctx));
  return InferConvGrad(ctx, ConvOutputShape(problem, attrs.channels_last_dims),
                       problem.out_channels);
}

template <typename T>
absl::Status ConvGrad(KernelContext& ctx) {
  const FlushDenormals flush;
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem, Resolve(ctx));
  const ConvGradCase conv = {problem, ctx.attrs<ConvAttrs>().channels_last_dims};
  const Tensor& out_grad = ctx.input(kConvOutGrad);
  if (Tensor* in_grad = ctx.optional_output(kConvInputGrad)) {
    INTERP_RETURN_IF_ERROR(ConvDataGrad<T>(ctx, conv, ctx.input(kConvFilter), out_grad, *in_grad));
  }
  if (Tensor* filter_grad = ctx.optional_output(kConvFilterGrad)) {
    INTERP_RETURN_IF_ERROR(
        ConvFilterGrad<T>(ctx, conv, ctx.input(kConvInput), out_grad, *filter_grad));
  }
  if (Tensor* bias_grad = ctx.optional_output(kConvBiasGrad)) {
    ConvBiasGrad<T>(out_grad, conv.channels_last_dims, *bias_grad, ctx.num_threads());
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Prepare(KernelContext& ctx) {
  const FlushDenormals flush;
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem, Resolve(ctx));
  return PrepareConvGrad<T>(ctx, problem);
}

int64_t Flops(const OpContext& ctx) { return ConvGradFlops(ctx, ctx.input(kConvOutGrad)); }

OpDef GradDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  OpDef def = ConvGradDef(type, parse, Infer);
  def.kernels = {
      {.dtype = DType::kFloat32, .run = ConvGrad<float>, .prepare = Prepare<float>},
      {DType::kFloat64, ConvGrad<double>},
      {.dtype = DType::kBFloat16, .run = ConvGrad<bfloat16>, .prepare = Prepare<bfloat16>}};
  def.precision = PrecisionRule::kReduced;
  def.flops = Flops;
  return def;
}

constexpr SecondOfTwoNames kSecondNames = {.operands = {"Input", "Filter"},
                                           .out_grad = "grad_out",
                                           .incoming = {"grad_input@GRAD", "grad_filter@GRAD"},
                                           .result_of_grad = "grad_out@GRAD",
                                           .results = {"Input@GRAD", "Filter@GRAD"},
                                           .first = {"Input@GRAD", "Filter@GRAD"},
                                           .first_out_grad = "Output@GRAD"};
constexpr SecondGradient kConv2dSecond = SecondOfTwo("conv2d_grad_grad", kSecondNames);
constexpr SecondGradient kConv3dSecond = SecondOfTwo("conv3d_grad_grad", kSecondNames);

INTERP_REGISTER_OP(WithSecond<kConv2dSecond>(GradDef("conv2d_grad",
                                                     ParseAttrs<ConvAttrs, ReadConv2dAttrs>)));
INTERP_REGISTER_OP(GradDef("depthwise_conv2d_grad", ParseAttrs<ConvAttrs, ReadConv2dAttrs>));
INTERP_REGISTER_OP(WithSecond<kConv3dSecond>(GradDef("conv3d_grad",
                                                     ParseAttrs<ConvAttrs, ReadConv3dAttrs>)));

}  // namespace
}  // namespace interp::nn
