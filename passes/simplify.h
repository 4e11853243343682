#pragma once

#include "passes/pass.h"

namespace interp {

// Drops ops of block 0 whose output always equals their input, and gives the two variables one
// name.
//
//   softmax(X=a) -> (Out=b)                              softmax(X=a) -> (Out=c)
//   scale(X=b) -> (Out=c) {scale=1.0, bias=0.0}  becomes
//   fetch(X=c) -> (Out=fetch) {col=0}                    fetch(X=c) -> (Out=fetch) {col=0}
//
// Such ops are assign; scale by 1 plus 0 (save_inference_model adds one to each fetch); cast to the
// type it has; dropout in test mode that scales while training, or with probability 0; concat and
// sum of one tensor; quantize_linear, dequantize_linear and moving_average_abs_max_scale that only
// observe, in test mode. The output must be declared with the type of the input.
//
// The name that stays is the one somebody else knows (fed, fetched, persistable, used by a
// sub-block); where both are known, the op stays, as it does when one of the two variables is
// written by any other op after it has been used: then they are two values. Linear time.
absl::StatusOr<Program> Simplify(Program program, const PassContext& context);

}  // namespace interp
