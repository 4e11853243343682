// Rows of mean, reduce_sum, _mean, _max, _min, _amax, _amin and _prod.
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/row.h"
#include "kernels/math/reduction.h"

namespace interp::cuda {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

template <ReduceOp kOp>
absl::Status ReduceDims(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const DimSet reduced, DimsOf(ctx));
  uint32_t bits = 0;
  for (int d = 0; d < x.shape.rank(); ++d) bits |= static_cast<uint32_t>(reduced[d]) << d;
  return Reduce(x.dtype, kOp, x.raw_data(), x.shape.dims(), bits,
                ctx.output(kOut).mutable_raw_data(), StreamOf(ctx));
}

constexpr std::initializer_list<DType> kReduced = {DType::kFloat32, DType::kFloat64,
                                                   DType::kFloat16, DType::kInt32, DType::kInt64};

INTERP_REGISTER_KERNELS("mean", RowsFor({DType::kFloat32, DType::kFloat64, DType::kFloat16},
                                        ReduceDims<ReduceOp::kMean>));
INTERP_REGISTER_KERNELS("reduce_sum", RowsFor(kReduced, ReduceDims<ReduceOp::kSum>));
INTERP_REGISTER_KERNELS("reduce_mean", RowsFor(kReduced, ReduceDims<ReduceOp::kMean>));
INTERP_REGISTER_KERNELS("reduce_max", RowsFor(kReduced, ReduceDims<ReduceOp::kMax>));
INTERP_REGISTER_KERNELS("reduce_min", RowsFor(kReduced, ReduceDims<ReduceOp::kMin>));
INTERP_REGISTER_KERNELS("reduce_amax", RowsFor(kReduced, ReduceDims<ReduceOp::kMax>));
INTERP_REGISTER_KERNELS("reduce_amin", RowsFor(kReduced, ReduceDims<ReduceOp::kMin>));
INTERP_REGISTER_KERNELS("reduce_prod", RowsFor(kReduced, ReduceDims<ReduceOp::kProd>));

}  // namespace
}  // namespace interp::cuda
