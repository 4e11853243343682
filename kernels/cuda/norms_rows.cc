// Rows of squared_l2_norm and clip_by_norm, and of clip.
#include <limits>

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/norms.h"
#include "kernels/cuda/row.h"
#include "kernels/math/clip.h"
#include "kernels/math/norm_attrs.h"

namespace interp::cuda {
namespace {

absl::Status SquaredNorm(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(NormWorkspaceBytes()));
  const Tensor& x = ctx.input(0);
  return SumOfSquares(x.data<float>(), x.numel(), work.data(), ctx.output(0).mutable_data<float>(),
                      StreamOf(ctx));
}

absl::Status ClipNorm(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(NormWorkspaceBytes()));
  const Tensor& x = ctx.input(0);
  return ClipByNorm(x.data<float>(), x.numel(), ctx.attrs<ClipByNormAttrs>().max_norm, work.data(),
                    ctx.output(0).mutable_data<float>(), StreamOf(ctx));
}

// The tensors Min and Max win over the attributes.
absl::Status Clip(KernelContext& ctx) {
  constexpr int kMin = 1;
  constexpr int kMax = 2;
  const ClipAttrs& attrs = ctx.attrs<ClipAttrs>();
  const Tensor* const min = ctx.optional_input(kMin);
  const Tensor* const max = ctx.optional_input(kMax);
  if (min == nullptr && max == nullptr && attrs.min > attrs.max) {
    return InvalidArgument("min is ", attrs.min, " and max is ", attrs.max,
                           ", expected min to be at most max");
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor& x = ctx.input(0);
  const int64_t dims[] = {x.numel()};
  constexpr int64_t kOne[] = {1};
  std::vector<ElementwiseOperand> operands = {{x.raw_data(), dims}};
  std::vector<ElementwiseStep> steps = {
      {.op = ElementwiseOp::kClip,
       .a = min == nullptr ? static_cast<float>(attrs.min) : -kInfinity,
       .b = max == nullptr ? static_cast<float>(attrs.max) : kInfinity}};
  for (const Tensor* bound : {min, max}) {
    if (bound == nullptr) continue;
    steps.push_back({.op = bound == min ? ElementwiseOp::kMax : ElementwiseOp::kMin,
                     .operand = static_cast<int>(operands.size())});
    operands.push_back({bound->raw_data(), kOne});
  }
  return Elementwise(x.dtype, steps, operands, dims, ctx.output(0).mutable_raw_data(),
                     StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("squared_l2_norm", RowsFor({DType::kFloat32}, SquaredNorm));
INTERP_REGISTER_KERNELS("clip_by_norm", RowsFor({DType::kFloat32}, ClipNorm));
INTERP_REGISTER_KERNELS("clip", RowsFor({DType::kFloat32, DType::kFloat16}, Clip));

}  // namespace
}  // namespace interp::cuda
