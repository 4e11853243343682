// Gradients of real variables by ops that compute with complex numbers.
#pragma once

#include "core/program.h"
#include "core/status.h"

namespace interp {

// Puts a `real` behind each eig_grad that gives the gradient of a variable declared real: the op
// reads no X, and its result is complex. Runs before VerifyProgram. InvalidArgument where
// VerifyStructure finds something. (Paddle: HandleComplexGradToRealGrad in
// fluid/framework/operator.cc, which does so when any op has run.)
absl::StatusOr<Program> TakeRealGradients(Program program);

}  // namespace interp
