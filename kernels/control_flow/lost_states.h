// The names of a recurrence's states, and states that its program has lost.
#pragma once

#include <string>
#include <vector>

#include "core/program.h"
#include "core/status.h"

namespace interp::control_flow {

// The names of the states in the block of `op`, a `recurrent` or its gradient, before a step and
// after it: one each for each argument of initial_states, InvalidArgument otherwise.
struct StateNames {
  std::vector<std::string> before;
  std::vector<std::string> after;
};
absl::StatusOr<StateNames> ReadStates(const Op& op);

// Names the values of the block of `op`, a `recurrent`, that its next step starts from, one for
// each state of `before`. These are `after`, as the program says, where the block makes them.
//
// Paddle before 2.0 pruned blocks by the slots of the op that runs them. The op that copies a state
// to its name in `states` fell to that: an attribute is no slot. What was copied is still there
// where it is an output, too. A lost state goes on as the output of its dtype and shape that the
// fewest ops lead to from the state's value before the step.
//
// Errors: InvalidArgument where there is no such output, several that are equally near, or one
// that two states lead to.
absl::StatusOr<std::vector<std::string>> FindStates(const Program& program, const Op& op,
                                                    const std::vector<std::string>& before,
                                                    std::vector<std::string> after);

}  // namespace interp::control_flow
