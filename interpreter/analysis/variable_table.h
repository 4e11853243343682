// BuildVariableTable: the variables of block 0 by dense id.
#pragma once

#include "core/program.h"
#include "interpreter/plan.h"

namespace interp {

// One PlanVar per name of the program, undeclared names included; ids are the program's. Linear.
std::vector<PlanVar> BuildVariableTable(const Program& program);

}  // namespace interp
