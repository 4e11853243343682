// Which dimensions a reduction folds, the shape of its result, and the loops that walk it.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstdint>

#include "core/status.h"
#include "core/tensor.h"
#include "kernels/util/loops.h"
#include "kernels/util/parallel_for.h"

namespace interp {

// Bit d: logical dimension d is reduced.
using DimSet = std::bitset<kMaxRank>;

// The set of the listed axes, negative ones counted from the end; all dimensions for an empty list.
// A scalar takes the axes 0 and -1.
absl::StatusOr<DimSet> ReducedDims(absl::Span<const int64_t> axes, int rank);

// Shape after the reduction: reduced dimensions become 1 or vanish.
Shape ReducedShape(const Shape& x, const DimSet& reduced, bool keep_dim);

struct ReducePlan {
  LoopNest kept;     // x moves in the input, y in the output
  LoopNest reduced;  // x moves in the input
  Loop inner;        // the loop that is fastest in memory; not in the nests
  bool rows = true;  // `inner` is a reduced loop
};

// The loops for out = reduction of x. Works for either keep_dim.
ReducePlan PlanReduce(const Tensor& x, const DimSet& reduced, const Tensor& out);

// The same for an output with these strides along the dimensions of x.
ReducePlan PlanReduce(const Tensor& x, const DimSet& reduced, const Strides& out);

// Strides of a reduction's output along the dimensions of its input; 0 where they are reduced.
Strides KeptStrides(const Tensor& out, const DimSet& reduced, int rank);

}  // namespace interp
