// Rows of the gradients of element-wise ops of two tensors.
#include "kernels/cuda/binary_grad.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/row.h"
#include "kernels/math/binary_grad.h"

namespace interp::cuda {
namespace {

using binary_grad::kOutGrad;
using binary_grad::kX;
using binary_grad::kXGrad;
using binary_grad::kY;
using binary_grad::kYGrad;

using Op = BinaryGradientOp;

absl::Status RunSide(KernelContext& ctx, Op op, bool by_y) {
  const binary_grad::Side side = binary_grad::SideOf(ctx, by_y ? kY : kX, by_y ? kX : kY);
  const Tensor& grad = *side.grad;
  const Shape self_dims = AlignedDims(*side.self_grad, grad.shape, side.axis);
  const Shape other_dims = AlignedDims(*side.other, grad.shape, side.axis);
  return BinaryGradient(grad.dtype,
                        {.op = op,
                         .by_y = by_y,
                         .self = TakesSelf(op, by_y) ? side.self->raw_data() : nullptr,
                         .self_dims = self_dims.dims(),
                         .other = TakesOther(op) ? side.other->raw_data() : nullptr,
                         .other_dims = other_dims.dims(),
                         .out_grad = grad.raw_data(),
                         .out_dims = grad.shape.dims(),
                         .self_grad = side.self_grad->mutable_raw_data()},
                        WorkspaceOf(ctx), StreamOf(ctx));
}

template <Op kOp>
absl::Status Row(KernelContext& ctx) {
  const Tensor* const x_grad = ctx.optional_output(kXGrad);
  // The one that overwrites Out@GRAD comes last.
  const bool x_last = x_grad != nullptr && x_grad->raw_data() == ctx.input(kOutGrad).raw_data();
  for (const bool by_y : {x_last, !x_last}) {
    if (!ctx.has_output(by_y ? kYGrad : kXGrad)) continue;
    INTERP_RETURN_IF_ERROR(RunSide(ctx, kOp, by_y));
  }
  return absl::OkStatus();
}

std::vector<KernelDef> BinaryRows(KernelFn run) {
  return RowsFor({DType::kFloat32, DType::kBFloat16}, run);
}

INTERP_REGISTER_KERNELS("elementwise_add_grad", BinaryRows(Row<Op::kAdd>));
INTERP_REGISTER_KERNELS("elementwise_sub_grad", BinaryRows(Row<Op::kSub>));
INTERP_REGISTER_KERNELS("elementwise_mul_grad", BinaryRows(Row<Op::kMul>));
INTERP_REGISTER_KERNELS("elementwise_div_grad", BinaryRows(Row<Op::kDiv>));
INTERP_REGISTER_KERNELS("elementwise_max_grad", BinaryRows(Row<Op::kMax>));
INTERP_REGISTER_KERNELS("elementwise_min_grad", BinaryRows(Row<Op::kMin>));
INTERP_REGISTER_KERNELS("elementwise_fmax_grad", BinaryRows(Row<Op::kFMax>));
INTERP_REGISTER_KERNELS("elementwise_fmin_grad", BinaryRows(Row<Op::kFMin>));
INTERP_REGISTER_KERNELS("elementwise_pow_grad", BinaryRows(Row<Op::kPow>));

}  // namespace
}  // namespace interp::cuda
