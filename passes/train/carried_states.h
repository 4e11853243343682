// CarryStatesThroughBlocks: lets gradients pass through states of loops and branches that start as
// something without gradient.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "passes/train/gradient_flow.h"

namespace interp {

// A state of a loop that starts as a constant or a feed is marked stop_gradient, although its block
// writes what has a gradient. In Paddle the mark holds in the block that declares the state alone:
// nothing flows to what the state starts as, and nothing from what it ends as, but in the block its
// gradient is carried. So it is in branches, and behind a loop in a branch. As a variable is one
// thing in all blocks here, the loop or branch gets another one:
//
//   assign(X=state) -> (Out=carried)
//   while(X=[carried]) -> (Out=carried)      with `carried` for `state` in its block
//   assign(X=carried) -> (Out=state)
//
// What share_data has detached from the state, and the block reads, is detached from `carried`.
//
// Left as they are: states of `blocked`, persistable ones, those that attributes name, those that
// each trip makes afresh or that have no value before a branch, and those of blocks to which no
// gradients flow.
//
// Returns whether anything has changed. `flow` is that of the program as it is. REQUIRES: no block
// is run by several ops or by itself.
bool CarryStatesThroughBlocks(const OpRegistry& ops, const std::vector<VarId>& blocked,
                              const GradientFlow& flow, Program& program);

}  // namespace interp
