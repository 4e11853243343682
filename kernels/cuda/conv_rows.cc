// conv2d, depthwise_conv2d, conv3d, fused_conv2d, the transposed ones, and the gradients of all.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/device/device.h"
#include "core/resource/float32_products.h"
#include "core/resource/place_resources.h"
#include "kernels/conv/conv_transpose_problem.h"
#include "kernels/cuda/conv.h"
#include "kernels/cuda/fused_activation.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/row.h"

namespace interp::cuda {
namespace {

// What an instruction of convolutions keeps.
struct ConvState : KernelState {
  const CudnnHandle* cudnn = nullptr;  // of its stream
  bool tf32 = false;                   // as its place has it, once there is a handle
  ConvPlans plans;

  std::string algorithm() const override { return plans.engine(); }
};

absl::Status Convolve(KernelContext& ctx, ConvDirection direction, const nn::ConvProblem& problem,
                      const Tensor& first, const Tensor& second, Tensor& out) {
  auto& state = ctx.state<ConvState>();
  if (state.cudnn == nullptr) {
    INTERP_ASSIGN_OR_RETURN(const Float32Products* const products,
                            Float32Products::Of(ctx.place_resources()));
    state.tf32 = products->as_tf32;
    INTERP_ASSIGN_OR_RETURN(state.cudnn, ctx.place_resources().GetOrMake<CudnnHandle>(
                                             absl::StrCat("stream ", ctx.stream().index()),
                                             [&ctx] { return CudnnHandle::Make(StreamOf(ctx)); }));
  }
  return state.plans.Run(
      *state.cudnn, {direction, out.dtype, ctx.algorithms(), state.tf32, problem},
      {.first = first.raw_data(), .second = second.raw_data(), .out = out.mutable_raw_data()},
      WorkspaceOf(ctx));
}

// Batch, channels and pixels of an image.
std::array<int64_t, 3> ImageDims(const Shape& image) {
  return {image[0], image[1], image.numel(2, image.rank())};
}

// out = activation(out + bias + residual), of which all may be missing.
absl::Status Finish(const KernelContext& ctx, const Tensor* bias, const Tensor* residual,
                    const nn::FusedActivation& activation, Tensor& out) {
  const std::array<int64_t, 3> dims = ImageDims(out.shape);
  const std::array<int64_t, 3> bias_dims = {1, dims[1], 1};
  std::vector<ElementwiseStep> steps;
  std::vector<ElementwiseOperand> operands = {{out.raw_data(), dims}};
  if (bias != nullptr) {
    steps.push_back({.op = ElementwiseOp::kAdd, .operand = static_cast<int>(operands.size())});
    operands.push_back({bias->raw_data(), bias_dims});
  }
  if (residual != nullptr) {
    steps.push_back({.op = ElementwiseOp::kAdd, .operand = static_cast<int>(operands.size())});
    operands.push_back({residual->raw_data(), dims});
  }
  AppendActivation(activation, steps);
  if (steps.empty() || out.numel() == 0) return absl::OkStatus();
  return Elementwise(out.dtype, steps, operands, dims, out.mutable_raw_data(), StreamOf(ctx));
}

// The gradient of a bias: sums over all pixels of all images.
absl::Status BiasGrad(const KernelContext& ctx, const Tensor& out_grad, Tensor* bias_grad) {
  if (bias_grad == nullptr) return absl::OkStatus();
  constexpr uint32_t kBatchAndPixels = 0b101;
  return Reduce(out_grad.dtype, ReduceOp::kSum, out_grad.raw_data(), ImageDims(out_grad.shape),
                kBatchAndPixels, bias_grad->mutable_raw_data(), WorkspaceOf(ctx), StreamOf(ctx));
}

absl::Status Conv(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<nn::ConvAttrs>();
  const Tensor& input = ctx.input(nn::kConvInput);
  const Tensor& filter = ctx.input(nn::kConvFilter);
  Tensor& output = ctx.output(nn::kConvOutput);
  INTERP_ASSIGN_OR_RETURN(const nn::ConvProblem problem,
                          nn::ResolveConv(attrs, input.shape, filter.shape));
  INTERP_RETURN_IF_ERROR(Convolve(ctx, ConvDirection::kForward, problem, input, filter, output));
  return Finish(ctx, ctx.optional_input(nn::kConvBias),
                attrs.fuse_residual ? &ctx.input(nn::kConvResidual) : nullptr, attrs.activation,
                output);
}

// Inputs and outputs of the gradients.
constexpr int kInput = 0;
constexpr int kFilter = 1;
constexpr int kBias = 2;
constexpr int kOutGrad = 3;

absl::Status ConvGrad(KernelContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  const Tensor& filter = ctx.input(kFilter);
  const Tensor& out_grad = ctx.input(kOutGrad);
  INTERP_ASSIGN_OR_RETURN(const nn::ConvProblem problem,
                          nn::ResolveConv(ctx.attrs<nn::ConvAttrs>(), input.shape, filter.shape));
  if (Tensor* in_grad = ctx.optional_output(kInput)) {
    INTERP_RETURN_IF_ERROR(
        Convolve(ctx, ConvDirection::kDataGrad, problem, filter, out_grad, *in_grad));
  }
  if (Tensor* filter_grad = ctx.optional_output(kFilter)) {
    INTERP_RETURN_IF_ERROR(
        Convolve(ctx, ConvDirection::kFilterGrad, problem, input, out_grad, *filter_grad));
  }
  return BiasGrad(ctx, out_grad, ctx.optional_output(kBias));
}

// The convolution that a transposed one with a result of shape `out` is the gradient of.
absl::StatusOr<nn::ConvProblem> ResolveTransposed(const KernelContext& ctx, const Shape& out) {
  INTERP_ASSIGN_OR_RETURN(
      nn::ConvProblem problem,
      nn::ResolveTranspose(ctx.attrs<nn::TransposeAttrs>(), ctx.input(kInput).shape,
                           ctx.input(kFilter).shape, out.dims().subspan(2)));
  std::swap(problem.in_channels, problem.out_channels);
  return problem;
}

absl::Status ConvTranspose(KernelContext& ctx) {
  Tensor& output = ctx.output(0);
  INTERP_ASSIGN_OR_RETURN(const nn::ConvProblem problem, ResolveTransposed(ctx, output.shape));
  INTERP_RETURN_IF_ERROR(Convolve(ctx, ConvDirection::kDataGrad, problem, ctx.input(kFilter),
                                  ctx.input(kInput), output));
  return Finish(ctx, ctx.optional_input(kBias), /*residual=*/nullptr,
                ctx.attrs<nn::TransposeAttrs>().conv.activation, output);
}

absl::Status ConvTransposeGrad(KernelContext& ctx) {
  const Tensor& out_grad = ctx.input(kOutGrad);
  INTERP_ASSIGN_OR_RETURN(const nn::ConvProblem problem, ResolveTransposed(ctx, out_grad.shape));
  if (Tensor* in_grad = ctx.optional_output(kInput)) {
    INTERP_RETURN_IF_ERROR(
        Convolve(ctx, ConvDirection::kForward, problem, out_grad, ctx.input(kFilter), *in_grad));
  }
  if (Tensor* filter_grad = ctx.optional_output(kFilter)) {
    INTERP_RETURN_IF_ERROR(Convolve(ctx, ConvDirection::kFilterGrad, problem, out_grad,
                                    ctx.input(kInput), *filter_grad));
  }
  return BiasGrad(ctx, out_grad, ctx.optional_output(kBias));
}

bool TakesConv(const nn::ConvAttrs& attrs) {
  return !attrs.channels_last_dims && !attrs.batch_norm && !attrs.pre_affine &&
         !attrs.post_affine && TakesActivation(attrs.activation);
}
bool TakesConvAttrs(const void* attrs) {
  return TakesConv(*static_cast<const nn::ConvAttrs*>(attrs));
}

// Results that are larger than the convolution of that stride has images are left to the host.
bool TakesTransposeAttrs(const void* attrs) {
  const auto& transpose = *static_cast<const nn::TransposeAttrs*>(attrs);
  const std::vector<int64_t>& strides = transpose.conv.window.strides;
  for (size_t i = 0; i < transpose.output_padding.size() && i < strides.size(); ++i) {
    if (transpose.output_padding[i] >= strides[i]) return false;
  }
  return TakesConv(transpose.conv);
}

// A convolution writes its result before it reads what is added.
std::vector<KernelDef> FusedRows() {
  std::vector<KernelDef> rows = RowsFor(kFloats, Conv, TakesConvAttrs);
  for (KernelDef& row : rows) row.inplace = false;
  return rows;
}

INTERP_REGISTER_KERNELS("conv2d", RowsFor(kFloats, Conv, TakesConvAttrs));
INTERP_REGISTER_KERNELS("depthwise_conv2d", RowsFor(kFloats, Conv, TakesConvAttrs));
INTERP_REGISTER_KERNELS("conv3d", RowsFor(kFloats, Conv, TakesConvAttrs));
INTERP_REGISTER_KERNELS("fused_conv2d", FusedRows());
INTERP_REGISTER_KERNELS("conv2d_grad", RowsFor(kFloats, ConvGrad, TakesConvAttrs));
INTERP_REGISTER_KERNELS("depthwise_conv2d_grad", RowsFor(kFloats, ConvGrad, TakesConvAttrs));
INTERP_REGISTER_KERNELS("conv3d_grad", RowsFor(kFloats, ConvGrad, TakesConvAttrs));
INTERP_REGISTER_KERNELS("conv2d_transpose", RowsFor(kFloats, ConvTranspose, TakesTransposeAttrs));
INTERP_REGISTER_KERNELS("depthwise_conv2d_transpose",
                        RowsFor(kFloats, ConvTranspose, TakesTransposeAttrs));
INTERP_REGISTER_KERNELS("conv3d_transpose", RowsFor(kFloats, ConvTranspose, TakesTransposeAttrs));
INTERP_REGISTER_KERNELS("conv2d_transpose_grad",
                        RowsFor(kFloats, ConvTransposeGrad, TakesTransposeAttrs));
INTERP_REGISTER_KERNELS("depthwise_conv2d_transpose_grad",
                        RowsFor(kFloats, ConvTransposeGrad, TakesTransposeAttrs));
INTERP_REGISTER_KERNELS("conv3d_transpose_grad",
                        RowsFor(kFloats, ConvTransposeGrad, TakesTransposeAttrs));

}  // namespace
}  // namespace interp::cuda
