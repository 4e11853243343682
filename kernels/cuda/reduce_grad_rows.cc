// Rows of the gradients of reductions.
#include "kernels/cuda/reduce_grad.h"
#include "kernels/cuda/row.h"
#include "kernels/math/reduction_grad.h"

namespace interp::cuda {
namespace {

using reduction_grad::kOut;
using reduction_grad::kOutGrad;
using reduction_grad::kX;
using reduction_grad::kXGrad;

// Without the tensors that the op reads besides Out@GRAD.
absl::StatusOr<ReduceGradientArguments> ArgumentsOf(const KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const DimSet reduced, DimsOf(ctx));
  return ReduceGradientArguments{.dims = ctx.output(kXGrad).shape.dims(),
                                 .reduced = static_cast<uint32_t>(reduced.to_ulong()),
                                 .out_grad = ctx.input(kOutGrad).raw_data(),
                                 .x_grad = ctx.output(kXGrad).mutable_raw_data()};
}

absl::Status Run(const KernelContext& ctx, const ReduceGradientArguments& args) {
  return ReduceGradient(ctx.output(kXGrad).dtype, args, StreamOf(ctx));
}

absl::Status SumGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const ReduceGradientArguments args, ArgumentsOf(ctx));
  return Run(ctx, args);
}

absl::Status MeanGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(ReduceGradientArguments args, ArgumentsOf(ctx));
  INTERP_ASSIGN_OR_RETURN(const DimSet reduced, DimsOf(ctx));
  args.divisor = static_cast<float>(ReducedCount(ctx.input(kX).shape, reduced));
  return Run(ctx, args);
}

template <ReduceGradientOp kOp>
absl::Status GradOfX(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(ReduceGradientArguments args, ArgumentsOf(ctx));
  args.op = kOp;
  args.x = ctx.input(kX).raw_data();
  constexpr bool kOfExtremes =
      kOp == ReduceGradientOp::kExtremes || kOp == ReduceGradientOp::kSharedExtremes;
  if constexpr (kOfExtremes) args.out = ctx.input(kOut).raw_data();
  const int64_t floats = ReduceGradientWorkspace(kOp, ctx.input(kOutGrad).numel());
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(floats) * sizeof(float)));
  args.workspace = work.data<float>();
  return Run(ctx, args);
}

INTERP_REGISTER_KERNELS("reduce_sum_grad", RowsFor({DType::kFloat32}, SumGrad));
INTERP_REGISTER_KERNELS("reduce_mean_grad", RowsFor({DType::kFloat32}, MeanGrad));
INTERP_REGISTER_KERNELS("mean_grad", RowsFor({DType::kFloat32}, MeanGrad));
using Op = ReduceGradientOp;

INTERP_REGISTER_KERNELS("reduce_max_grad", RowsFor({DType::kFloat32}, GradOfX<Op::kExtremes>));
INTERP_REGISTER_KERNELS("reduce_min_grad", RowsFor({DType::kFloat32}, GradOfX<Op::kExtremes>));
INTERP_REGISTER_KERNELS("reduce_amax_grad",
                        RowsFor({DType::kFloat32}, GradOfX<Op::kSharedExtremes>));
INTERP_REGISTER_KERNELS("reduce_amin_grad",
                        RowsFor({DType::kFloat32}, GradOfX<Op::kSharedExtremes>));
INTERP_REGISTER_KERNELS("reduce_prod_grad", RowsFor({DType::kFloat32}, GradOfX<Op::kProducts>));
INTERP_REGISTER_KERNELS("squared_l2_norm_grad", RowsFor({DType::kFloat32}, GradOfX<Op::kSquares>));

}  // namespace
}  // namespace interp::cuda
