// conv2d_grad, depthwise_conv2d_grad, conv3d_grad: the gradients of a convolution by its input, its
// filter and its bias.
#include "kernels/nn/conv_grad.h"
#include "kernels/nn/conv_problem.h"
#include "kernels/nn/gradient_shape.h"
#include "kernels/util/flush_denormals.h"

namespace interp::nn {
namespace {

constexpr int kOutGrad = 3;
constexpr int kInputGrad = 0;
constexpr int kFilterGrad = 1;
constexpr int kBiasGrad = 2;

absl::StatusOr<ConvProblem> Resolve(const OpContext& ctx) {
  return ResolveConv(ctx.attrs<ConvAttrs>(), ctx.input(kConvInput).shape,
                     ctx.input(kConvFilter).shape);
}

absl::Status Infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<ConvAttrs>();
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem, Resolve(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradient(ctx.input(kOutGrad), "Output@GRAD",
                                       ConvOutputShape(problem, attrs.channels_last_dims)));
  const Tensor* bias = ctx.optional_input(kConvBias);
  if (bias == nullptr ? ctx.has_output(kBiasGrad) : bias->numel() != problem.out_channels) {
    return InvalidArgument("input 'Bias' is ", bias == nullptr ? "absent" : DescribeType(*bias),
                           ", expected [", problem.out_channels, "]");
  }
  ctx.ShareShape(kConvInput, kInputGrad);
  ctx.ShareShape(kConvFilter, kFilterGrad);
  if (bias != nullptr) ctx.ShareShape(kConvBias, kBiasGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status ConvGrad(KernelContext& ctx) {
  const FlushDenormals flush;
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem, Resolve(ctx));
  const ConvGradCase conv = {problem, ctx.attrs<ConvAttrs>().channels_last_dims};
  const Tensor& out_grad = ctx.input(kOutGrad);
  if (Tensor* in_grad = ctx.optional_output(kInputGrad)) {
    INTERP_RETURN_IF_ERROR(ConvDataGrad<T>(ctx, conv, ctx.input(kConvFilter), out_grad, *in_grad));
  }
  if (Tensor* filter_grad = ctx.optional_output(kFilterGrad)) {
    INTERP_RETURN_IF_ERROR(
        ConvFilterGrad<T>(ctx, conv, ctx.input(kConvInput), out_grad, *filter_grad));
  }
  if (Tensor* bias_grad = ctx.optional_output(kBiasGrad)) {
    ConvBiasGrad<T>(out_grad, conv.channels_last_dims, *bias_grad, ctx.num_threads());
  }
  return absl::OkStatus();
}

// As many as the forward convolution for each gradient.
int64_t Flops(const OpContext& ctx) {
  const int count = (ctx.has_output(kInputGrad) ? 1 : 0) + (ctx.has_output(kFilterGrad) ? 1 : 0);
  return count * ConvFlops(ctx.input(kOutGrad), ctx.input(kConvFilter));
}

OpDef GradDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  return OpDef{
      .type = type,
      .inputs = {{"Input"},
                 {"Filter", kAnyLayout},
                 {"Bias", kOptional | kNoNeedBuffer},
                 {"Output@GRAD"}},
      .outputs = {{"Input@GRAD", kOptional},
                  {"Filter@GRAD", kOptional | kAnyLayout},
                  {"Bias@GRAD", kOptional}},
      .parse = parse,
      .infer = Infer,
      .kernels = {{DType::kFloat32, ConvGrad<float>},
                  {DType::kFloat64, ConvGrad<double>},
                  {DType::kBFloat16, ConvGrad<bfloat16>}},
      .layout = LayoutRule::kPrefersChannelsLast,
      .precision = PrecisionRule::kReduced,
      .flops = Flops,
  };
}

INTERP_REGISTER_OP(GradDef("conv2d_grad", ParseAttrs<ConvAttrs, ReadConv2dAttrs>));
INTERP_REGISTER_OP(GradDef("depthwise_conv2d_grad", ParseAttrs<ConvAttrs, ReadConv2dAttrs>));
INTERP_REGISTER_OP(GradDef("conv3d_grad", ParseAttrs<ConvAttrs, ReadConv3dAttrs>));

}  // namespace
}  // namespace interp::nn
