// Rows of mean, reduce_sum, _mean, _max, _min, _amax, _amin, _prod and of norms.
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/row.h"
#include "kernels/math/norm_attrs.h"
#include "kernels/math/reduction.h"

namespace interp::cuda {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

// `what`: a ReduceOp or a ReduceNorm.
template <typename What>
absl::Status Run(KernelContext& ctx, const What& what) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const DimSet reduced, DimsOf(ctx));
  uint32_t bits = 0;
  for (int d = 0; d < x.shape.rank(); ++d) bits |= static_cast<uint32_t>(reduced[d]) << d;
  return Reduce(x.dtype, what, x.raw_data(), x.shape.dims(), bits,
                ctx.output(kOut).mutable_raw_data(), WorkspaceOf(ctx), StreamOf(ctx));
}

template <ReduceOp kOp>
absl::Status ReduceDims(KernelContext& ctx) {
  return Run(ctx, kOp);
}

absl::Status PNorm(KernelContext& ctx) {
  return Run(ctx, ReduceNorm{.order = ctx.attrs<PNormAttrs>().order});
}
absl::Status Frobenius(KernelContext& ctx) { return Run(ctx, ReduceNorm{}); }
absl::Status Magnitudes(KernelContext& ctx) { return Run(ctx, ReduceNorm{.order = 1}); }
absl::Status Squares(KernelContext& ctx) { return Run(ctx, ReduceNorm{.squared = true}); }

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

constexpr std::initializer_list<DType> kNormed = {DType::kFloat32, DType::kFloat64};
INTERP_REGISTER_KERNELS("p_norm", RowsFor(kNormed, PNorm));
INTERP_REGISTER_KERNELS("frobenius_norm", RowsFor(kNormed, Frobenius));
INTERP_REGISTER_KERNELS("l1_norm", RowsFor(kNormed, Magnitudes));
// That of float32 is one of norms.h.
INTERP_REGISTER_KERNELS("squared_l2_norm", RowsFor({DType::kFloat64}, Squares));

}  // namespace
}  // namespace interp::cuda
