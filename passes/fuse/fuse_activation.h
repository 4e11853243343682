#pragma once

#include "passes/pass.h"

namespace interp {

// Joins activations that are written in pieces: swish, gelu in both forms, hard_swish, hard_sigmoid
// and mish.
//
//   scale(X=x) -> (Out=a) {scale=0.70710677}
//   erf(X=a) -> (Out=b)
//   scale(X=b) -> (Out=c) {scale=1.0, bias=1.0}
//   elementwise_mul(X=x, Y=c) -> (Out=d)
//   scale(X=d) -> (Out=y) {scale=0.5}
// becomes
//   gelu(X=x) -> (Out=y) {approximate=false}
//
// There are many ways to write each, so functions are told by their values: what the ops make of
// some numbers has to be what the activation makes of them (scalar_function.h).
// Convolutions and products take activations in, so it comes before them. Only where nobody else
// sees what lies between: gradients do. Linear time.
absl::StatusOr<Program> FuseActivation(Program program, const PassContext& context);

}  // namespace interp
