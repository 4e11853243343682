// Rows of group_norm, instance_norm and of their gradients.
#include <algorithm>

#include "kernels/cuda/group_norm.h"
#include "kernels/cuda/row.h"
#include "kernels/norm/group_norm.h"
#include "kernels/util/data_or_null.h"

namespace interp::cuda {
namespace {

// Images that lie in plain order.
ChannelShape ImagesOf(const Tensor& x, bool channels_last) {
  const int rank = x.shape.rank();
  return {.images = x.shape[0],
          .channels = channels_last ? x.shape.back() : x.shape[1],
          .pixels = channels_last ? x.shape.numel(1, rank - 1) : x.shape.numel(2, rank),
          .channels_last = channels_last};
}

int64_t GroupsOf(const nn::GroupNormAttrs& attrs, const ChannelShape& shape) {
  return attrs.groups == 0 ? std::max<int64_t>(shape.channels, 1) : attrs.groups;
}

StoredVariance StoredOf(const nn::GroupNormAttrs& attrs) {
  return attrs.instance ? StoredVariance::kInverse : StoredVariance::kVariance;
}

// X, Scale, Bias -> Y, Mean, Variance.
absl::Status NormaliseGroups(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<nn::GroupNormAttrs>();
  const Tensor& x = ctx.input(/*slot=*/0);
  const ChannelShape shape = ImagesOf(x, attrs.channels_last_dims);
  return GroupNorm(x.dtype,
                   {.shape = shape,
                    .groups = GroupsOf(attrs, shape),
                    .x = x.raw_data(),
                    .scale = InputOrNull(ctx, /*slot=*/1),
                    .bias = InputOrNull(ctx, /*slot=*/2),
                    .epsilon = attrs.epsilon,
                    .stored = StoredOf(attrs),
                    .y = ctx.output(/*slot=*/0).mutable_raw_data(),
                    .mean = OutputOrNull(ctx, /*slot=*/1),
                    .variance = OutputOrNull(ctx, /*slot=*/2)},
                   StreamOf(ctx));
}

// X, Scale, Mean, Variance, Y@GRAD, Y, Bias -> X@GRAD, Scale@GRAD, Bias@GRAD. As on the host,
// group_norm_grad without Bias leaves out the mean of the gradients; instance_norm_grad has none.
template <bool kInstance>
absl::Status GroupsGrad(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<nn::GroupNormAttrs>();
  const Tensor& x = ctx.input(/*slot=*/0);
  const ChannelShape shape = ImagesOf(x, attrs.channels_last_dims);
  const auto sums = static_cast<size_t>(2 * shape.images * shape.channels);
  INTERP_ASSIGN_OR_RETURN(const Workspace scratch, ctx.workspace(sums * sizeof(double)));
  return GroupNormGrad(x.dtype,
                       {.shape = shape,
                        .groups = GroupsOf(attrs, shape),
                        .x = x.raw_data(),
                        .y_grad = ctx.input(/*slot=*/4).raw_data(),
                        .scale = InputOrNull(ctx, /*slot=*/1),
                        .mean = ctx.input(/*slot=*/2).raw_data(),
                        .variance = ctx.input(/*slot=*/3).raw_data(),
                        .epsilon = attrs.epsilon,
                        .stored = StoredOf(attrs),
                        .centers = kInstance || ctx.has_input(/*slot=*/6),
                        .x_grad = OutputOrNull(ctx, /*slot=*/0),
                        .scale_grad = OutputOrNull(ctx, /*slot=*/1),
                        .bias_grad = OutputOrNull(ctx, /*slot=*/2),
                        .sums = scratch.data<double>()},
                       StreamOf(ctx));
}

constexpr std::initializer_list<DType> kNormalised = {DType::kFloat32, DType::kFloat64};

INTERP_REGISTER_KERNELS("group_norm", RowsFor(kNormalised, NormaliseGroups));
INTERP_REGISTER_KERNELS("instance_norm", RowsFor(kNormalised, NormaliseGroups));
INTERP_REGISTER_KERNELS("group_norm_grad", RowsFor(kNormalised, GroupsGrad<false>));
INTERP_REGISTER_KERNELS("instance_norm_grad", RowsFor(kNormalised, GroupsGrad<true>));

}  // namespace
}  // namespace interp::cuda
