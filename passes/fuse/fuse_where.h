#pragma once

#include "passes/pass.h"

namespace interp {

// Joins what paddle.where writes for operands of several shapes: zeros of the shape that they
// broadcast to, which it adds to each.
//
//   fill_any_like(X=x) -> (Out=a) {value=0}            b is like y
//   fill_any_like(X=condition) -> (Out=e) {value=0}
//   cast(X=e) -> (Out=c)
//   elementwise_add(X=a, Y=b) -> (Out=d)
//   elementwise_add(X=d, Y=c) -> (Out=z)
//   elementwise_add(X=x, Y=z) -> (Out=bx)
//   elementwise_add(X=y, Y=z) -> (Out=by)
//   cast(X=condition) -> (Out=f)
//   elementwise_add(X=f, Y=z) -> (Out=g)
//   cast(X=g) -> (Out=bc) {out_dtype=bool}
//   where(Condition=bc, X=bx, Y=by) -> (Out=out)
// becomes
//   broadcast_where(Condition=condition, X=x, Y=y) -> (Out=out)
//
// Results are the same but for zeros that were negative, which a sum with zero makes positive. Only
// where nobody else reads the sums: gradients do. Linear time.
absl::StatusOr<Program> FuseWhere(Program program, const PassContext& context);

}  // namespace interp
