// AssignStreams: the queue, stream and priority of each instruction.
#pragma once

#include <vector>

#include "core/program.h"
#include "interpreter/plan.h"

namespace interp {

// Instructions whose kernel runs on the host go to the host queue and stream 0, where order is by
// edges alone: no events are needed. Priority is the op's `scheduling_priority` attribute where it
// has one, else 1 for communication ops and 0 for the others (lower first), as in Paddle.
void AssignStreams(const Program& program, std::vector<Instruction>& instructions);

}  // namespace interp
