// What each instruction reads, writes and computes.
#pragma once

#include <cstdint>
#include <vector>

#include "interpreter/interpreter_core.h"

namespace interp {

// Of one run of an instruction; 0: unknown.
struct InstructionCost {
  // Sizes of the inputs it reads and of its outputs; a variable that is both counts twice. What
  // shares memory instead of reading and writing it (views, feeds, tensor arrays) is 0.
  int64_t bytes = 0;
  int64_t flops = 0;  // see OpDef::flops
};

// By number in the program (Plan::first_number), from the shapes that the last run of `core` left:
// in sub-blocks those of the last activation. REQUIRES: no run in progress.
std::vector<InstructionCost> CostsOfLastRun(const InterpreterCore& core);

}  // namespace interp
