// Rows of layer_norm.
#include "kernels/cuda/layer_norm.h"
#include "kernels/cuda/row.h"
#include "kernels/norm/layer_norm.h"
#include "kernels/util/data_or_null.h"

namespace interp::cuda {
namespace {

absl::Status NormaliseRows(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<nn::LayerNormAttrs>();
  const Tensor& x = ctx.input(/*slot=*/0);
  return LayerNorm(x.dtype,
                   {.x = x.raw_data(),
                    .scale = InputOrNull<float>(ctx, /*slot=*/1),
                    .bias = InputOrNull<float>(ctx, /*slot=*/2),
                    .y = ctx.output(/*slot=*/0).mutable_raw_data(),
                    .means = OutputOrNull<float>(ctx, /*slot=*/1),
                    .variances = OutputOrNull<float>(ctx, /*slot=*/2),
                    .rows = x.shape.numel(0, attrs.FirstDim(x.shape)),
                    .length = x.shape.numel(attrs.FirstDim(x.shape), x.shape.rank()),
                    .epsilon = attrs.epsilon},
                   StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("layer_norm", RowsFor({DType::kFloat32, DType::kBFloat16}, NormaliseRows));

}  // namespace
}  // namespace interp::cuda
