// ChooseHomes: where the memory of every variable lies.
#pragma once

#include <vector>

#include "interpreter/plan/plan.h"

namespace interp {

// Sets PlanVar::place of everything that instructions write, in the plans of all blocks: the place
// of its first writer in program order. The host for feeds, for what a kernel that runs a block
// reads while the block writes it (a loop's condition) or after each activation, and for
// persistable variables that several places write. A variable has one place, whatever plan uses it.
void ChooseHomes(std::vector<Plan>& plans);

}  // namespace interp
