// Maxima with their positions: what max_pool*_with_index, unpool and their gradients share.
#pragma once

#include "kernels/pool/pool_problem.h"
#include "kernels/util/indices.h"

namespace interp::nn {

// Pixels of one channel of one image, of shape [N, C, ...].
inline int64_t PlaneSize(const Shape& image) { return image.numel(2, image.rank()); }

// Unimplemented for images that are channels-last.
inline absl::StatusOr<PoolShapes> ResolveIndexPool(const PoolAttrs& attrs, const Shape& x) {
  if (attrs.channels_last_dims) {
    return Unimplemented("attribute 'data_format' says channels-last, expected NCHW or NCDHW");
  }
  return ResolvePool(attrs, x);
}

// The windows of a pooling that gives positions. Unlike those of pool2d, adaptive ones are bins.
inline absl::StatusOr<Pool> MakeIndexPool(const PoolAttrs& attrs, const Tensor& x) {
  INTERP_ASSIGN_OR_RETURN(const PoolShapes shapes, ResolveIndexPool(attrs, x.shape));
  Pool pool = MakePool(attrs, shapes.window, x);
  for (int i = 3 - shapes.window.rank; i < 3; ++i) {
    pool.axes[i].adaptive = attrs.adaptive;
  }
  return pool;
}

// InvalidArgument unless `positions` are int32 or int64 of the shape `shape`.
inline absl::Status CheckPositionsType(const Tensor& positions, absl::string_view name,
                                       const Shape& shape) {
  const bool integers = positions.dtype == DType::kInt32 || positions.dtype == DType::kInt64;
  if (integers && positions.shape == shape) return absl::OkStatus();
  return InvalidArgument("input '", name, "' is ", DescribeType(positions),
                         ", expected int32 or int64 of shape ", ToString(shape));
}

}  // namespace interp::nn
