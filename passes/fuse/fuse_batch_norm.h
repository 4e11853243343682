#pragma once

#include "passes/pass.h"

namespace interp {

// Joins a batch norm and the relu that alone reads it, so that the image is walked once.
//
//   batch_norm(X=x, ...) -> (Y=a, ...) {is_test=true}
//   relu(X=a) -> (Out=y)
// becomes
//   batch_norm(X=x, ...) -> (Y=y, ...) {is_test=true, fuse_with_relu=true}
//
// Those behind a convolution are part of it by then (fuse_conv.h). Only with running statistics:
// gradients want what lies between. The op stands where the relu stood. Linear time.
absl::StatusOr<Program> FuseBatchNorm(Program program, const PassContext& context);

}  // namespace interp
