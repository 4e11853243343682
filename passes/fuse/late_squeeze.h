#pragma once

#include "passes/pass.h"

namespace interp {

// Keeps sequences images of one row from convolution to convolution, as Conv1D computes on them:
// what lies between is done on the image, so that it can be joined with the convolution and keeps
// its layout.
//
//   squeeze2(X=image) -> (Out=a) {axes=[-2]}
//   leaky_relu(X=a) -> (Out=b)                        leaky_relu(X=image) -> (Out=b.image)
//   unsqueeze2(X=b) -> (Out=c) {axes=[-2]}   becomes
//   conv2d(Input=c) -> (Output=d)                     conv2d(Input=b.image) -> (Output=d)
//
// Goes through activations and the like, element-wise ops on two such images or with a number or a
// parameter by channel, batch norms in test mode, and concat and split. Whoever else reads `a` or
// `b` reads what squeezes the image behind the op. Transposed convolutions compute on images of one
// column, which turn_row makes rows and back. That the image has one row
// follows from ops before (symbolic_shapes.h); programs with gradients stay. Linear time.
absl::StatusOr<Program> LateSqueeze(Program program, const PassContext& context);

}  // namespace interp
