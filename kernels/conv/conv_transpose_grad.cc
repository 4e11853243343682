// conv2d_transpose_grad, depthwise_conv2d_transpose_grad, conv3d_transpose_grad. The op is the
// gradient of a convolution C by its input, which makes its own gradients those of C the other way
// round:
//   Input@GRAD = C(Output@GRAD),   Filter@GRAD = gradient of C by its filter at Output@GRAD, of
//   Input
#include "kernels/conv/conv_grad.h"
#include "kernels/conv/conv_transpose_problem.h"
#include "kernels/util/flush_denormals.h"

namespace interp::nn {
namespace {

// The size of the output may have been a tensor's, so it is that of the gradient.
absl::StatusOr<ConvProblem> Resolve(const OpContext& ctx) {
  const auto& attrs = ctx.attrs<TransposeAttrs>();
  const Shape& out = ctx.input(kConvOutGrad).shape;
  std::vector<int64_t> wanted = attrs.output_size;
  if (wanted.empty() && attrs.output_padding.empty() && out.rank() > 2) {
    const int first = attrs.conv.channels_last_dims ? 1 : 2;
    wanted.assign(out.begin() + first, out.begin() + first + out.rank() - 2);
  }
  return ResolveTranspose(attrs, ctx.input(kConvInput).shape, ctx.input(kConvFilter).shape, wanted);
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem, Resolve(ctx));
  const bool last = ctx.attrs<TransposeAttrs>().conv.channels_last_dims;
  return InferConvGrad(ctx, TransposeOutputShape(problem, last), problem.out_channels);
}

template <typename T>
absl::Status ConvTransposeGrad(KernelContext& ctx) {
  const FlushDenormals flush;
  INTERP_ASSIGN_OR_RETURN(ConvProblem problem, Resolve(ctx));
  std::swap(problem.in_channels, problem.out_channels);
  const ConvGradCase conv = {problem, ctx.attrs<TransposeAttrs>().conv.channels_last_dims};
  const Tensor& out_grad = ctx.input(kConvOutGrad);
  if (Tensor* in_grad = ctx.optional_output(kConvInputGrad)) {
    INTERP_RETURN_IF_ERROR(ConvForward<T>(ctx, conv, ctx.input(kConvFilter), out_grad, *in_grad));
  }
  if (Tensor* filter_grad = ctx.optional_output(kConvFilterGrad)) {
    INTERP_RETURN_IF_ERROR(
        ConvFilterGrad<T>(ctx, conv, out_grad, ctx.input(kConvInput), *filter_grad));
  }
  if (Tensor* bias_grad = ctx.optional_output(kConvBiasGrad)) {
    ConvBiasGrad<T>(out_grad, conv.channels_last_dims, *bias_grad, ctx.num_threads());
  }
  return absl::OkStatus();
}

int64_t Flops(const OpContext& ctx) { return ConvGradFlops(ctx, ctx.input(kConvInput)); }

OpDef GradDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  OpDef def = ConvGradDef(type, parse, Infer);
  def.kernels = {{DType::kFloat32, ConvTransposeGrad<float>},
                 {DType::kFloat64, ConvTransposeGrad<double>}};
  def.flops = Flops;
  return def;
}

INTERP_REGISTER_OP(GradDef("conv2d_transpose_grad", ParseAttrs<TransposeAttrs, ReadTranspose2d>));
INTERP_REGISTER_OP(GradDef("depthwise_conv2d_transpose_grad",
                           ParseAttrs<TransposeAttrs, ReadTranspose2d>));
INTERP_REGISTER_OP(GradDef("conv3d_transpose_grad", ParseAttrs<TransposeAttrs, ReadTranspose3d>));

}  // namespace
}  // namespace interp::nn
