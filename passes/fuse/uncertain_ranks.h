// Variables whose rank in a run may be another than the declared one.
#pragma once

#include <vector>

#include "core/program.h"

namespace interp {

// By VarId: what is computed of the result of a squeeze without axes, which at batch 1 drops the
// batch, too, or of one along an axis that is not declared as 1, which may stay. Up to ops whose
// result has its rank whatever the input has.
std::vector<bool> FindUncertainRanks(const Program& program);

}  // namespace interp
