// Gradients that the steps of `recurrent` hand on, which Paddle declares nowhere.
#pragma once

#include "core/program.h"
#include "core/status.h"

namespace interp {

// Declares, in the block of each recurrent_grad, the gradients of its outputs and of its states
// before and after a step, where the block does not: for programs as they were loaded. Paddle's
// append_backward leaves out those of `states`, which it has no op for, and has always found them
// in the scope of the step; from 2.6 on it drops the op that reads them, too, and they are given in
// vain. Runs before VerifyProgram. InvalidArgument where VerifyStructure finds something.
// (Paddle: base/backward.py, "the input of this op does not even exist in the program".)
absl::StatusOr<Program> DeclareStepGradients(Program program);

}  // namespace interp
