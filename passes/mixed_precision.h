// Mixed precision: products and convolutions in 16 bits, with parameters and everything delicate in
// float32.
#pragma once

#include "passes/pass.h"

namespace interp {

// What each op of block 0 is computed in follows from OpDef::precision:
//
//   kReduced  16 bits
//   kFollows  16 bits where an input is of 16 bits already and none was computed in float32
//   kFull     float32, and so is what has no kernel for 16 bits, updates a persistable variable,
//   has
//             role optimize or learning rate, or is named by PassContext::float32_ops
//
// A variable's own name stays for its value in float32; the one in 16 bits is beside it and both
// are made when somebody reads them:
//
//   mul(X=x, Y=w) -> (Out=a)        cast(X=x) -> (Out=x.cast_bf16)
//   relu(X=a) -> (Out=b)            cast(X=w) -> (Out=w.cast_bf16)
//   mean(X=b) -> (Out=loss)         mul(X=x.cast_bf16, Y=w.cast_bf16) -> (Out=a.cast_bf16)
//                                   relu(X=a.cast_bf16) -> (Out=b.cast_bf16)
//                                   cast(X=b.cast_bf16) -> (Out=b)
//                                   mean(X=b) -> (Out=loss)
//
// So what is fetched, saved or used by blocks is float32, parameters are their own masters, and
// gradients reach the optimizer in float32. The ops of other blocks are left as they are. Works on
// forward and on training programs. float16 needs a scaled loss: passes/train/loss_scaling.h.
absl::StatusOr<Program> ComputeInBFloat16(Program program, const PassContext& context);
absl::StatusOr<Program> ComputeInFloat16(Program program, const PassContext& context);

}  // namespace interp
