// BuildVariableTable: the variables of one block by dense id.
#pragma once

#include <vector>

#include "core/program.h"
#include "interpreter/analysis/blocks.h"
#include "interpreter/plan/plan.h"

namespace interp {

// Fills plan.vars, num_program_vars and captures: one PlanVar per variable that the block declares
// or uses, undeclared ones included, in the order of their ids in the program. Linear.
void BuildVariableTable(const Program& program, const BlockTree& tree, int32_t block, Plan& plan);

// The plan's id for the program's variable `program_var`, or -1. Logarithmic.
VarId FindVar(const Plan& plan, VarId program_var);

}  // namespace interp
