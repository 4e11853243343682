// Updates that come every few steps, as Paddle's incubate.optimizer.GradientMergeOptimizer writes
// them: in a block that a conditional_block without a role runs.
#pragma once

#include "core/program.h"

namespace interp {

// Marks as parts of the update (op_role 2) the ops of block 0 that run a block with ops of the
// update, and what counts the steps for them: ops without a role, behind the first gradient, whose
// results such ops alone read. Fleet's programs have these roles. Linear in ops and arguments.
void MarkMergedUpdates(Program& program);

}  // namespace interp
