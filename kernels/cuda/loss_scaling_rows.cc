// Rows of check_finite_and_unscale and update_loss_scaling.
#include "kernels/cuda/loss_scaling.h"
#include "kernels/cuda/row.h"
#include "kernels/optimizer/update_attrs.h"

namespace interp::cuda {
namespace {

// X and Out, whose sizes count elements, or bytes.
std::vector<ArrayUpdate> ArraysOf(const KernelContext& ctx, bool in_bytes) {
  std::vector<ArrayUpdate> arrays;
  for (size_t i = 0; i < ctx.inputs(0).size(); ++i) {
    const Tensor& x = *ctx.inputs(0)[i];
    arrays.push_back({.in = x.raw_data(),
                      .out = ctx.outputs(0)[i]->mutable_raw_data(),
                      .size = in_bytes ? static_cast<int64_t>(x.size_bytes()) : x.numel()});
  }
  return arrays;
}

absl::Status Unscale(KernelContext& ctx) {
  if (ctx.inputs(0).empty()) return InvalidArgument("'X' has no argument");
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(kUnscaleWorkspaceBytes));
  return CheckFiniteAndUnscale(ctx.inputs(0)[0]->dtype, ArraysOf(ctx, /*in_bytes=*/false),
                               FloatsOf(&ctx.input(1)), work.data(),
                               ctx.output(1).mutable_data<bool>(), StreamOf(ctx));
}

absl::Status UpdateScale(KernelContext& ctx) {
  constexpr int kFoundInfinite = 1;
  constexpr int kPrevLossScaling = 2;
  constexpr int kStopUpdate = 5;
  const auto& attrs = ctx.attrs<optimizer::LossScalingAttrs>();
  const bool* const found = ctx.input(kFoundInfinite).data<bool>();
  INTERP_RETURN_IF_ERROR(ZeroWhere(found, ArraysOf(ctx, /*in_bytes=*/true), StreamOf(ctx)));
  const Tensor& scale = ctx.input(kPrevLossScaling);
  return UpdateLossScale(
      {.found = found,
       .stop = ctx.has_input(kStopUpdate) ? ctx.input(kStopUpdate).data<bool>() : nullptr,
       .stops = attrs.stop,
       .scale = {scale.raw_data(), ctx.output(1).mutable_raw_data(), scale.dtype},
       .good_in = ctx.input(kPrevLossScaling + 1).data<int32_t>(),
       .bad_in = ctx.input(kPrevLossScaling + 2).data<int32_t>(),
       .good_out = ctx.output(2).mutable_data<int32_t>(),
       .bad_out = ctx.output(3).mutable_data<int32_t>(),
       .grow_after = attrs.grow_after,
       .shrink_after = attrs.shrink_after,
       .grow = attrs.grow,
       .shrink = attrs.shrink},
      StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("check_finite_and_unscale", RowsFor(kFloats, Unscale));
INTERP_REGISTER_KERNELS("update_loss_scaling", RowsFor({DType::kUndefined}, UpdateScale));

}  // namespace
}  // namespace interp::cuda
