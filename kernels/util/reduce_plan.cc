#include "kernels/util/reduce_plan.h"

#include <algorithm>
#include <array>
#include <optional>

namespace interp {

absl::StatusOr<DimSet> ReducedDims(absl::Span<const int64_t> axes, int rank) {
  DimSet reduced;
  for (const int64_t axis : axes) {
    const std::optional<int> dim = NormalizeAxis(axis, std::max(rank, 1));
    if (!dim.has_value()) {
      return InvalidArgument("axis ", axis, " is outside of a tensor with ", rank, " dimensions");
    }
    reduced.set(*dim);
  }
  if (axes.empty()) reduced.set();
  return reduced;
}

Shape ReducedShape(const Shape& x, const DimSet& reduced, bool keep_dim) {
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    if (!reduced[i]) {
      out.push_back(x[i]);
    } else if (keep_dim) {
      out.push_back(1);
    }
  }
  return out;
}

Strides KeptStrides(const Tensor& out, const DimSet& reduced, int rank) {
  const bool keep_dim = out.shape.rank() == rank;  // or nothing is reduced: the same
  const Strides own = StridesOf(out);
  Strides strides = {};
  for (int i = 0, o = 0; i < rank; ++i) {
    if (!reduced[i]) strides[i] = own[keep_dim ? i : o];
    if (keep_dim || !reduced[i]) ++o;
  }
  return strides;
}

ReducePlan PlanReduce(const Tensor& x, const DimSet& reduced, const Tensor& out) {
  return PlanReduce(x, reduced, KeptStrides(out, reduced, x.shape.rank()));
}

ReducePlan PlanReduce(const Tensor& x, const DimSet& reduced, const Strides& out) {
  const int rank = x.shape.rank();
  const std::array<int, kMaxRank> order = MemoryOrder(x);
  const Strides x_strides = StridesOf(x);
  ReducePlan plan;
  plan.inner = {1, 1, 1};
  bool any = false;
  for (int i = rank - 1; i >= 0 && !any; --i) {
    any = x.shape[order[i]] != 1;
    if (any) plan.rows = reduced[order[i]];
  }
  for (int i = 0; i < rank; ++i) {
    const int dim = order[i];
    const Loop loop{x.shape[dim], x_strides[dim], out[dim]};
    if (loop.size != 1) (reduced[dim] ? plan.reduced : plan.kept).Add(loop);
  }
  if (any) plan.inner = (plan.rows ? plan.reduced : plan.kept).Pop();
  return plan;
}

}  // namespace interp
