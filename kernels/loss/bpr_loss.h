// bpr_loss: the shapes of both directions.
#pragma once

#include "core/op_def.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/indices.h"

namespace interp {

// The first inputs of bpr_loss and of its gradient: X [...,C], Label [...,1].
inline constexpr int kBprX = 0;
inline constexpr int kBprLabel = 1;

// Checks them; the shape of Y.
inline absl::StatusOr<Shape> ResolveBpr(const OpContext& ctx) {
  const Shape& x = ctx.input(kBprX).shape;
  if (x.rank() < 1 || x.back() < 2) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected at least 2 classes");
  }
  Shape y = x;
  y[x.rank() - 1] = 1;
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kBprLabel, "Label", y));
  return y;
}

}  // namespace interp
