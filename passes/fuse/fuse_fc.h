#pragma once

#include "passes/pass.h"

namespace interp {

// Joins a matrix product with a weight, the addition of a bias and an activation into one fc.
//
//   mul(X=x, Y=w) -> (Out=a) {x_num_col_dims=1, y_num_col_dims=1}
//   elementwise_add(X=a, Y=b) -> (Out=c)
//   relu(X=c) -> (Out=y)
// becomes
//   fc(Input=x, W=w, Bias=b) -> (Out=y) {in_num_col_dims=1, activation_type="relu",
//                                        fuse_alpha=0.0, fuse_beta=0.0}
//
// The product is mul, matmul or matmul_v2 without transposition and with a matrix as Y; the bias is
// mandatory, the activation is not. Conditions as for FuseConv: parameters that no op changes,
// intermediates nobody else sees, an fc kernel for the dtype. Linear time.
absl::StatusOr<Program> FuseFc(Program program, const PassContext& context);

}  // namespace interp
