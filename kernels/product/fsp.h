// fsp, flow of a solution procedure: the shapes of both directions.
#pragma once

#include "core/op_def.h"

namespace interp::nn {

// The first inputs of fsp and of its gradient: X [N,C,H,W], Y [N,K,H,W].
inline constexpr int kFspX = 0;
inline constexpr int kFspY = 1;

// Checks them; the shape of Out, [N,C,K].
inline absl::StatusOr<Shape> ResolveFsp(const OpContext& ctx) {
  const Shape& x = ctx.input(kFspX).shape;
  const Shape& y = ctx.input(kFspY).shape;
  if (x.rank() != 4) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected 4 dims");
  }
  if (y.rank() != 4 || y[0] != x[0] || y[2] != x[2] || y[3] != x[3]) {
    return InvalidArgument("input 'Y' has shape ", ToString(y), ", expected [", x[0], ",K,", x[2],
                           ",", x[3], "]");
  }
  return Shape{x[0], x[1], y[1]};
}

}  // namespace interp::nn
