// AnalyzeStorage: which variables may share memory, by view and inplace pairs.
#pragma once

#include <vector>

#include "interpreter/plan.h"

namespace interp {

// Sets PlanVar::storage: variables joined by a `share` pair of any instruction get one id, every
// other variable has one of its own. Also sets PlanVar::constant: persistable and written by no
// instruction. Near-linear (union-find).
void AnalyzeStorage(const std::vector<Instruction>& instructions, std::vector<PlanVar>& vars);

// True when the pair is a view: the output takes the input's memory without writing to it.
bool IsView(const Instruction& instruction, const InplacePair& pair);

}  // namespace interp
