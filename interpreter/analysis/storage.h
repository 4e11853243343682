// AnalyzeStorage: which variables may share memory, by view and inplace pairs.
#pragma once

#include <vector>

#include "interpreter/plan/plan.h"

namespace interp {

// Sets PlanVar::storage: variables joined by a `share` pair of any instruction get one id, every
// other variable has one of its own. Near-linear (union-find).
void AnalyzeStorage(const std::vector<Instruction>& instructions, std::vector<PlanVar>& vars);

}  // namespace interp
