// Rows of label_smooth and its gradient.
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/row.h"
#include "kernels/tensor/label_smooth.h"

namespace interp::cuda {
namespace {

// X, PriorDist -> Out.
absl::Status Row(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor* const prior = ctx.optional_input(1);
  Tensor& out = ctx.output(0);
  if (out.numel() == 0) return absl::OkStatus();
  const float epsilon = ctx.attrs<LabelSmoothAttrs>().epsilon;
  const int64_t classes = x.shape.back();
  const int64_t dims[] = {x.numel() / classes, classes};
  const float uniform = prior == nullptr ? epsilon / static_cast<float>(classes) : 0.0f;
  const ElementwiseStep keep = {.op = ElementwiseOp::kScale, .a = 1.0f - epsilon, .b = uniform};
  INTERP_RETURN_IF_ERROR(Elementwise(out.dtype, {keep}, {{x.raw_data(), dims}}, dims,
                                     out.mutable_raw_data(), StreamOf(ctx)));
  if (prior == nullptr) return absl::OkStatus();
  const int64_t prior_dims[] = {1, classes};
  return Elementwise(
      out.dtype,
      {{.op = ElementwiseOp::kScale, .a = epsilon}, {.op = ElementwiseOp::kAdd, .operand = 1}},
      {{prior->raw_data(), prior_dims}, {out.raw_data(), dims}}, dims, out.mutable_raw_data(),
      StreamOf(ctx));
}

// Out@GRAD -> X@GRAD.
absl::Status GradientRow(KernelContext& ctx) {
  const Tensor& out_grad = ctx.input(0);
  const int64_t dims[] = {out_grad.numel()};
  const ElementwiseStep keep = {.op = ElementwiseOp::kScale,
                                .a = 1.0f - ctx.attrs<LabelSmoothAttrs>().epsilon};
  return Elementwise(out_grad.dtype, {keep}, {{out_grad.raw_data(), dims}}, dims,
                     ctx.output(0).mutable_raw_data(), StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("label_smooth", RowsFor({DType::kFloat32}, Row));
INTERP_REGISTER_KERNELS("label_smooth_grad", RowsFor({DType::kFloat32}, GradientRow));

}  // namespace
}  // namespace interp::cuda
