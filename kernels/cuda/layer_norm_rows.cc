// Rows of layer_norm.
#include "kernels/cuda/layer_norm.h"
#include "kernels/cuda/row.h"
#include "kernels/nn/layer_norm.h"

namespace interp::cuda {
namespace {

float* Statistics(Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->mutable_data<float>();
}
const float* Parameters(const Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->data<float>();
}

absl::Status NormaliseRows(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<nn::LayerNormAttrs>();
  const Tensor& x = ctx.input(/*slot=*/0);
  return LayerNorm(x.dtype,
                   {.x = x.raw_data(),
                    .scale = Parameters(ctx.optional_input(/*slot=*/1)),
                    .bias = Parameters(ctx.optional_input(/*slot=*/2)),
                    .y = ctx.output(/*slot=*/0).mutable_raw_data(),
                    .means = Statistics(ctx.optional_output(/*slot=*/1)),
                    .variances = Statistics(ctx.optional_output(/*slot=*/2)),
                    .rows = x.shape.numel(0, attrs.FirstDim(x.shape)),
                    .length = x.shape.numel(attrs.FirstDim(x.shape), x.shape.rank()),
                    .epsilon = attrs.epsilon},
                   StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("layer_norm", RowsFor({DType::kFloat32, DType::kBFloat16}, NormaliseRows));

}  // namespace
}  // namespace interp::cuda
