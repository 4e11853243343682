// Rows of batch_norm, sync_batch_norm and their gradients.
#include "kernels/cuda/batch_norm.h"
#include "kernels/cuda/row.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/util/data_or_null.h"

namespace interp::cuda {
namespace {

using nn::BatchNormAttrs;

ChannelShape ShapeOf(const Tensor& x, bool channels_last) {
  const nn::ImageView view = nn::ViewImage(x, channels_last);
  return {view.batch(), view.channels(), view.pixels(), channels_last};
}

absl::StatusOr<Workspace> Scratch(const KernelContext& ctx, const ChannelShape& shape) {
  return ctx.workspace(BatchNormWorkspace(shape));
}

absl::Status Forward(KernelContext& ctx) {
  constexpr int kX = 0;
  constexpr int kMomentumTensor = 5;
  const auto& attrs = ctx.attrs<BatchNormAttrs>();
  const Tensor& x = ctx.input(kX);
  const ChannelShape shape = ShapeOf(x, attrs.channels_last_dims);
  INTERP_ASSIGN_OR_RETURN(const Workspace work, Scratch(ctx, shape));
  return BatchNorm(x.dtype,
                   {.shape = shape,
                    .x = x.raw_data(),
                    .scale = InputOrNull<float>(ctx, 1),
                    .bias = InputOrNull<float>(ctx, 2),
                    .mean = ctx.input(3).data<float>(),
                    .variance = ctx.input(4).data<float>(),
                    .running = attrs.running_statistics,
                    .epsilon = attrs.epsilon,
                    .momentum = attrs.momentum,
                    .momentum_data = InputOrNull<float>(ctx, kMomentumTensor),
                    .relu = attrs.relu,
                    .y = ctx.output(0).mutable_raw_data(),
                    .mean_out = OutputOrNull<float>(ctx, 1),
                    .variance_out = OutputOrNull<float>(ctx, 2),
                    .saved_mean = OutputOrNull<float>(ctx, 3),
                    .saved_inverse = OutputOrNull<float>(ctx, 4),
                    .workspace = work.data()},
                   StreamOf(ctx));
}

absl::Status Gradient(KernelContext& ctx) {
  constexpr int kX = 0;
  constexpr int kMean = 3;
  constexpr int kMeanOut = 5;
  constexpr int kSavedMean = 7;
  constexpr int kYGrad = 10;
  const auto& attrs = ctx.attrs<BatchNormAttrs>();
  const Tensor& x = ctx.input(kX);
  const ChannelShape shape = ShapeOf(x, attrs.channels_last_dims);
  INTERP_ASSIGN_OR_RETURN(const Workspace work, Scratch(ctx, shape));
  // Programs give the running statistics under either name; variances are a slot further.
  int mean = kSavedMean;
  int variance = kSavedMean + 1;
  if (attrs.running_gradient) {
    mean = ctx.has_input(kMean) ? kMean : kMeanOut;
    variance = ctx.has_input(kMean + 1) ? kMean + 1 : kMeanOut + 1;
  }
  Tensor* const x_grad = ctx.optional_output(0);
  return BatchNormGradient(x.dtype,
                           {.shape = shape,
                            .x = x.raw_data(),
                            .y_grad = ctx.input(kYGrad).raw_data(),
                            .scale = InputOrNull<float>(ctx, 1),
                            .mean = ctx.input(mean).data<float>(),
                            .variance = ctx.input(variance).data<float>(),
                            .running = attrs.running_gradient,
                            .epsilon = attrs.epsilon,
                            .x_grad = x_grad != nullptr ? x_grad->mutable_raw_data() : nullptr,
                            .scale_grad = OutputOrNull<float>(ctx, 1),
                            .bias_grad = OutputOrNull<float>(ctx, 2),
                            .workspace = work.data()},
                           StreamOf(ctx));
}

std::vector<KernelDef> NormRows(KernelFn run) {
  return RowsFor({DType::kFloat32, DType::kBFloat16}, run);
}

INTERP_REGISTER_KERNELS("batch_norm", NormRows(Forward));
INTERP_REGISTER_KERNELS("sync_batch_norm", NormRows(Forward));
INTERP_REGISTER_KERNELS("batch_norm_grad", NormRows(Gradient));
INTERP_REGISTER_KERNELS("sync_batch_norm_grad", NormRows(Gradient));

}  // namespace
}  // namespace interp::cuda
