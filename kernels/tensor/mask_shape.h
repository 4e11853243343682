// X and Mask of masked_select in their common shape; shared with its gradient.
#pragma once

#include <algorithm>

#include "core/op_def.h"
#include "kernels/util/strided_copy.h"

namespace interp::masked_select {

inline absl::StatusOr<Shape> CommonShape(const Shape& a, const Shape& b) {
  Shape shape;
  for (int i = std::max(a.rank(), b.rank()); i > 0; --i) {
    const int64_t da = i <= a.rank() ? a.back(i) : 1;
    const int64_t db = i <= b.rank() ? b.back(i) : 1;
    if (da != db && da != 1 && db != 1) {
      return InvalidArgument("'X' has shape ", ToString(a), " and 'Mask' ", ToString(b),
                             ", which do not broadcast");
    }
    shape.push_back(da == 1 ? db : da);
  }
  return shape;
}

// `in` itself when it has `shape`, else `scratch` filled with `in` broadcast to it.
inline absl::StatusOr<const Tensor*> Broadcast(KernelContext& ctx, const Tensor& in,
                                               const Shape& shape, Tensor& scratch) {
  if (in.shape == shape) return &in;
  scratch.shape = shape;
  scratch.dtype = in.dtype;
  INTERP_RETURN_IF_ERROR(ctx.Allocate(scratch));
  const Strides from = StridesOf(in);
  const Strides to = StridesOf(scratch);
  const int added = shape.rank() - in.shape.rank();
  CopyDims dims;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool repeats = i < added || in.shape[i - added] == 1;
    dims.push_back({shape[i], repeats ? 0 : from[i - added], to[i]});
  }
  CopyStrided(ctx.num_threads(), SizeOf(in.dtype), dims, in.raw_data(), scratch.mutable_raw_data());
  return &scratch;
}

}  // namespace interp::masked_select
