// KeepRecurrentStates: lets gradients pass from step to step through all states of a recurrence.
#pragma once

#include "core/op_def.h"
#include "core/program.h"
#include "passes/train/gradient_flow.h"

namespace interp {

// Behind the last step nothing has made the gradient of a state, and before it that of a state
// takes the place of its gradient as an output: recurrent_grad does as Paddle's. So a state that no
// rnn_memory_helper copies, or that is an output, gets a copy that is both:
//
//   recurrent(...) -> (outputs=[out, state@STATE]) {states=["state@STATE"]}
//
// with assign(X=state) -> (Out=state@STATE) at the end of its block. What it gives as an output has
// no use, so its gradient is zeros there.
//
// Left as they are: states that no op of the block makes, and recurrences to which no gradients
// flow. Returns whether anything has changed. `flow` is that of the program as it is. REQUIRES: no
// block is run by several ops or by itself.
bool KeepRecurrentStates(const OpRegistry& ops, const GradientFlow& flow, Program& program);

}  // namespace interp
