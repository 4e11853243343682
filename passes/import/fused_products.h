// Matrix products into which Paddle's oneDNN passes have fused more than a bias and an activation.
#pragma once

#include "core/program.h"
#include "core/status.h"

namespace interp {

// Takes `fc` and `fused_matmul` apart where they reshape or transpose (fused_reshape_X,
// fused_transpose_X, the same of Y and Out, fused_reshape2_shape), add ResidualData or scale their
// result (fused_output_scale):
//
//   fused_matmul(X=x, Y=y, ResidualData=r) -> (Out=o) {fused_reshape_X=[0,0,4,8],
//       fused_transpose_X=[0,2,1,3], fuse_activation="relu"}
//
// becomes
//
//   reshape2(X=x) -> (Out=o@FUSED_0) {shape=[0,0,4,8]}
//   transpose2(X=o@FUSED_0) -> (Out=o@FUSED_1) {axis=[0,2,1,3]}
//   fused_matmul(X=o@FUSED_1, Y=y) -> (Out=o@FUSED_2)
//   fused_elementwise_add(X=o@FUSED_2, Y=r) -> (Out=o) {fuse_activation="relu"}
//
// Runs before VerifyProgram. Numbers make the names new. Linear time. InvalidArgument where
// attributes have other types than Paddle gives them.
absl::StatusOr<Program> SplitFusedProducts(Program program);

}  // namespace interp
