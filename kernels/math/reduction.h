// What the ops that reduce dimensions have in common: the attributes that say which, and the shape
// of the result.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "kernels/util/reduce.h"

namespace interp {

struct ReductionAttrs {
  std::vector<int64_t> dims;  // empty: all
  bool keep_dim = false;
  DType out_dtype = DType::kUndefined;  // what X is cast to before the reduction
};

// Reads dim, keep_dim, reduce_all and out_dtype.
ReductionAttrs ReadReductionAttrs(AttrReader& attrs);
// Of ops that reduce all dimensions and have no attributes.
inline ReductionAttrs ReadWholeReduction(AttrReader&) { return {}; }

// Sets Out's shape, and the LoD of X where its first dimension stays.
absl::Status InferReduction(InferContext& ctx);

// Definition of an op with input X, output Out, the optional axis tensors of newer programs and
// those attributes.
OpDef ReductionDef(absl::string_view type, std::vector<KernelDef> kernels);

// What the gradient of such an op takes, Out or not, and gives.
GradientDef ReductionGradient(bool of_out);

// Sets the shape of Out: X at slot 0 without the `reduced` dimensions. It keeps the LoD of X unless
// dimension 0 is reduced.
void SetReducedShape(InferContext& ctx, const DimSet& reduced, bool keep_dim);

// The dimensions such an op reduces; for infer and for the kernel.
absl::StatusOr<DimSet> DimsOf(const OpContext& ctx);

// The number of elements of X that go into one output.
int64_t ReducedCount(const Shape& x, const DimSet& reduced);

// Reduces X of T to Out of R with the dimensions of DimsOf.
template <typename T, typename R, typename Reducer, typename Finish>
absl::Status RunReduction(KernelContext& ctx, const Reducer& reducer, const Finish& finish) {
  const Tensor& x = ctx.input(0);
  Tensor& out = ctx.output(0);
  INTERP_ASSIGN_OR_RETURN(const DimSet reduced, DimsOf(ctx));
  RunReduce(PlanReduce(x, reduced, out), ctx.num_threads(), x.data<T>(), out.mutable_data<R>(),
            reducer, finish);
  return absl::OkStatus();
}

}  // namespace interp
