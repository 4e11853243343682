// Variables whose rank a run may find below the declared one.
#pragma once

#include <vector>

#include "core/program.h"

namespace interp {

// By VarId: what is computed of the result of a squeeze without axes, which at batch 1 drops the
// batch, too. Up to ops whose result has its rank whatever the input has.
std::vector<bool> FindUncertainRanks(const Program& program);

}  // namespace interp
