// conv2d_transpose_grad, depthwise_conv2d_transpose_grad, conv3d_transpose_grad. The op is the
// gradient of a convolution C by its input, which makes its own gradients those of C the other way
// round:
//   Input@GRAD = C(Output@GRAD),   Filter@GRAD = gradient of C by its filter at Output@GRAD, of
//   Input
#include "kernels/nn/conv_grad.h"
#include "kernels/nn/conv_transpose_problem.h"
#include "kernels/nn/gradient_shape.h"
#include "kernels/util/flush_denormals.h"

namespace interp::nn {
namespace {

constexpr int kInput = 0;
constexpr int kFilter = 1;
constexpr int kBias = 2;
constexpr int kOutGrad = 3;
constexpr int kInputGrad = 0;
constexpr int kFilterGrad = 1;
constexpr int kBiasGrad = 2;

// The size of the output may have been a tensor's, so it is that of the gradient.
absl::StatusOr<ConvProblem> Resolve(const OpContext& ctx) {
  const auto& attrs = ctx.attrs<TransposeAttrs>();
  const Shape& out = ctx.input(kOutGrad).shape;
  std::vector<int64_t> wanted = attrs.output_size;
  if (wanted.empty() && attrs.output_padding.empty() && out.rank() > 2) {
    const int first = attrs.conv.channels_last_dims ? 1 : 2;
    wanted.assign(out.begin() + first, out.begin() + first + out.rank() - 2);
  }
  return ResolveTranspose(attrs, ctx.input(kInput).shape, ctx.input(kFilter).shape, wanted);
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem, Resolve(ctx));
  const bool last = ctx.attrs<TransposeAttrs>().conv.channels_last_dims;
  INTERP_RETURN_IF_ERROR(
      CheckGradient(ctx.input(kOutGrad), "Output@GRAD", TransposeOutputShape(problem, last)));
  const Tensor* bias = ctx.optional_input(kBias);
  if (bias == nullptr ? ctx.has_output(kBiasGrad) : bias->numel() != problem.out_channels) {
    return InvalidArgument("input 'Bias' is ", bias == nullptr ? "absent" : DescribeType(*bias),
                           ", expected [", problem.out_channels, "]");
  }
  ctx.ShareShape(kInput, kInputGrad);
  ctx.ShareShape(kFilter, kFilterGrad);
  if (bias != nullptr) ctx.ShareShape(kBias, kBiasGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status ConvTransposeGrad(KernelContext& ctx) {
  const FlushDenormals flush;
  INTERP_ASSIGN_OR_RETURN(ConvProblem problem, Resolve(ctx));
  std::swap(problem.in_channels, problem.out_channels);
  const ConvGradCase conv = {problem, ctx.attrs<TransposeAttrs>().conv.channels_last_dims};
  const Tensor& out_grad = ctx.input(kOutGrad);
  if (Tensor* in_grad = ctx.optional_output(kInputGrad)) {
    INTERP_RETURN_IF_ERROR(ConvForward<T>(ctx, conv, ctx.input(kFilter), out_grad, *in_grad));
  }
  if (Tensor* filter_grad = ctx.optional_output(kFilterGrad)) {
    INTERP_RETURN_IF_ERROR(ConvFilterGrad<T>(ctx, conv, out_grad, ctx.input(kInput), *filter_grad));
  }
  if (Tensor* bias_grad = ctx.optional_output(kBiasGrad)) {
    ConvBiasGrad<T>(out_grad, conv.channels_last_dims, *bias_grad, ctx.num_threads());
  }
  return absl::OkStatus();
}

// As many as the forward op for each gradient.
int64_t Flops(const OpContext& ctx) {
  const int count = (ctx.has_output(kInputGrad) ? 1 : 0) + (ctx.has_output(kFilterGrad) ? 1 : 0);
  return count * ConvFlops(ctx.input(kInput), ctx.input(kFilter));
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
      .kernels = {{DType::kFloat32, ConvTransposeGrad<float>},
                  {DType::kFloat64, ConvTransposeGrad<double>}},
      .layout = LayoutRule::kPrefersChannelsLast,
      .flops = Flops,
  };
}

INTERP_REGISTER_OP(GradDef("conv2d_transpose_grad", ParseAttrs<TransposeAttrs, ReadTranspose2d>));
INTERP_REGISTER_OP(GradDef("depthwise_conv2d_transpose_grad",
                           ParseAttrs<TransposeAttrs, ReadTranspose2d>));
INTERP_REGISTER_OP(GradDef("conv3d_transpose_grad", ParseAttrs<TransposeAttrs, ReadTranspose3d>));

}  // namespace
}  // namespace interp::nn
