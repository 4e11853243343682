#pragma once

#include "passes/pass.h"

namespace interp {

// Joins a product of a value and the sigmoid of that value, or of a multiple of it.
//
//   scale(X=x) -> (Out=a) {scale=1.702, bias=0.0}
//   sigmoid(X=a) -> (Out=s)
//   elementwise_mul(X=x, Y=s) -> (Out=y)
// becomes
//   swish(X=x) -> (Out=y) {beta=1.702}
//
// So do programs that are exported for TensorRT write SiLU, and CLIP its GELU. Convolutions and
// products take it in, so it comes before them. Only where nobody else sees what lies between:
// gradients do. Linear time.
absl::StatusOr<Program> FuseSwish(Program program, const PassContext& context);

}  // namespace interp
