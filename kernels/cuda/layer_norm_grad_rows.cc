// The row of layer_norm_grad.
#include "kernels/cuda/layer_norm_grad.h"
#include "kernels/cuda/row.h"
#include "kernels/norm/layer_norm.h"
#include "kernels/util/data_or_null.h"

namespace interp::cuda {
namespace {

absl::Status Row(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<nn::LayerNormAttrs>();
  const Tensor& x = ctx.input(0);
  Tensor* const x_grad = ctx.optional_output(0);
  return LayerNormGradient(x.dtype,
                           {.x = x.raw_data(),
                            .y_grad = ctx.input(5).raw_data(),
                            .scale = InputOrNull<float>(ctx, 1),
                            .means = ctx.input(3).data<float>(),
                            .variances = ctx.input(4).data<float>(),
                            .x_grad = x_grad != nullptr ? x_grad->mutable_raw_data() : nullptr,
                            .scale_grad = OutputOrNull<float>(ctx, 1),
                            .bias_grad = OutputOrNull<float>(ctx, 2),
                            .rows = x.shape.numel(0, attrs.FirstDim(x.shape)),
                            .length = x.shape.numel(attrs.FirstDim(x.shape), x.shape.rank()),
                            .epsilon = attrs.epsilon},
                           WorkspaceOf(ctx), StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("layer_norm_grad", RowsFor({DType::kFloat32, DType::kBFloat16}, Row));

}  // namespace
}  // namespace interp::cuda
