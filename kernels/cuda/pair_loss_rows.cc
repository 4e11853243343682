// Rows of log_loss, huber_loss, smooth_l1_loss and of their gradients.
#include "kernels/cuda/pair_loss.h"
#include "kernels/cuda/row.h"
#include "kernels/loss/loss_attrs.h"
#include "kernels/util/data_or_null.h"

namespace interp::cuda {
namespace {

// Predicted, Labels and, of the gradient, Loss@GRAD -> Loss or Predicted@GRAD.
template <bool kGradient>
absl::Status LogLossRow(KernelContext& ctx) {
  const Tensor& x = ctx.input(/*slot=*/0);
  return LogLoss(x.dtype,
                 {.x = x.raw_data(),
                  .label = ctx.input(/*slot=*/1).raw_data(),
                  .grad = kGradient ? ctx.input(/*slot=*/2).raw_data() : nullptr,
                  .out = ctx.output(/*slot=*/0).mutable_raw_data(),
                  .size = x.numel(),
                  .epsilon = ctx.attrs<LogLossAttrs>().epsilon},
                 StreamOf(ctx));
}

// X, Y -> Out, Residual.
absl::Status HuberLossRow(KernelContext& ctx) {
  const Tensor& x = ctx.input(/*slot=*/0);
  return HuberLoss(x.dtype,
                   {.x = x.raw_data(),
                    .y = ctx.input(/*slot=*/1).raw_data(),
                    .out = ctx.output(/*slot=*/0).mutable_raw_data(),
                    .residual = OutputOrNull(ctx, /*slot=*/1),
                    .size = x.numel(),
                    .delta = ctx.attrs<HuberAttrs>().delta},
                   StreamOf(ctx));
}

// Residual, Out@GRAD -> X@GRAD, Y@GRAD.
absl::Status HuberLossGradRow(KernelContext& ctx) {
  const Tensor& residual = ctx.input(/*slot=*/0);
  return HuberLossGrad(residual.dtype,
                       {.residual = residual.raw_data(),
                        .grad = ctx.input(/*slot=*/1).raw_data(),
                        .x_grad = OutputOrNull(ctx, /*slot=*/0),
                        .y_grad = OutputOrNull(ctx, /*slot=*/1),
                        .size = residual.numel(),
                        .delta = ctx.attrs<HuberAttrs>().delta},
                       StreamOf(ctx));
}

// X, Y, InsideWeight, OutsideWeight -> Diff, Out.
absl::Status SmoothL1Row(KernelContext& ctx) {
  const Tensor& x = ctx.input(/*slot=*/0);
  return SmoothL1Loss(x.dtype,
                      {.x = x.raw_data(),
                       .y = ctx.input(/*slot=*/1).raw_data(),
                       .inside = InputOrNull(ctx, /*slot=*/2),
                       .outside = InputOrNull(ctx, /*slot=*/3),
                       .diff = ctx.output(/*slot=*/0).mutable_raw_data(),
                       .out = ctx.output(/*slot=*/1).mutable_raw_data(),
                       .rows = x.shape[0],
                       .width = x.shape.numel(1, x.shape.rank()),
                       .sigma = ctx.attrs<SmoothL1Attrs>().sigma},
                      StreamOf(ctx));
}

// Diff, InsideWeight, OutsideWeight, Out@GRAD -> X@GRAD, Y@GRAD.
absl::Status SmoothL1GradRow(KernelContext& ctx) {
  const Tensor& diff = ctx.input(/*slot=*/0);
  return SmoothL1LossGrad(diff.dtype,
                          {.diff = diff.raw_data(),
                           .inside = InputOrNull(ctx, /*slot=*/1),
                           .outside = InputOrNull(ctx, /*slot=*/2),
                           .grad = ctx.input(/*slot=*/3).raw_data(),
                           .x_grad = OutputOrNull(ctx, /*slot=*/0),
                           .y_grad = OutputOrNull(ctx, /*slot=*/1),
                           .rows = diff.shape[0],
                           .width = diff.shape.numel(1, diff.shape.rank()),
                           .sigma = ctx.attrs<SmoothL1Attrs>().sigma},
                          StreamOf(ctx));
}

constexpr std::initializer_list<DType> kLossFloats = {DType::kFloat32, DType::kFloat64};

INTERP_REGISTER_KERNELS("log_loss", RowsFor(kLossFloats, LogLossRow<false>));
INTERP_REGISTER_KERNELS("log_loss_grad", RowsFor(kLossFloats, LogLossRow<true>));
INTERP_REGISTER_KERNELS("huber_loss", RowsFor(kLossFloats, HuberLossRow));
INTERP_REGISTER_KERNELS("huber_loss_grad", RowsFor(kLossFloats, HuberLossGradRow));
INTERP_REGISTER_KERNELS("smooth_l1_loss", RowsFor(kLossFloats, SmoothL1Row));
INTERP_REGISTER_KERNELS("smooth_l1_loss_grad", RowsFor(kLossFloats, SmoothL1GradRow));

}  // namespace
}  // namespace interp::cuda
