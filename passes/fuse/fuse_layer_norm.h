#pragma once

#include "passes/pass.h"

namespace interp {

// Joins normalisation of the last dimension that is written in pieces, as models from elsewhere and
// language models write it, into layer_norm or, where no mean is taken away, into rms_norm:
//
//   reduce_mean(X=x) -> (Out=m) {dim=[-1], keep_dim=true}    counted from the end, as ranks may lie
//   elementwise_sub(X=x, Y=m) -> (Out=d)
//   pow(X=d) -> (Out=q) {factor=2}                       or square, or d times d
//   reduce_mean(X=q) -> (Out=v) {dim=[-1], keep_dim=true}
//   scale(X=v) -> (Out=e) {scale=1, bias=1e-6}
//   sqrt(X=e) -> (Out=s)
//   elementwise_div(X=d, Y=s) -> (Out=n)                 or d times rsqrt
//   elementwise_mul(X=n, Y=w) -> (Out=a)
//   elementwise_add(X=a, Y=b) -> (Out=y)
// becomes
//   layer_norm(X=x, Scale=w, Bias=b) -> (Y=y) {begin_norm_axis=-1, epsilon=1e-6}
//
// Only where nobody else reads what lies between: gradients do. Linear time.
//
// Results differ by rounding, which shows where rows are nearly constant or squares near the ends
// of the range: reduce_mean adds up in doubles, the joined ops in the dtype.
absl::StatusOr<Program> FuseLayerNorm(Program program, const PassContext& context);

}  // namespace interp
