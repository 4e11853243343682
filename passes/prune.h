#pragma once

#include "passes/pass.h"

namespace interp {

// The name by which the pass is switched off.
inline constexpr absl::string_view kPrunePass = "prune";

// Drops the ops of block 0 that contribute to nothing anybody sees.
//
//   relu(X=x) -> (Out=y)
//   tanh(X=x) -> (Out=unused)      is dropped
//   fetch(X=y) -> (Out=fetch) {col=0}
//
// Kept are feed and fetch ops, ops with side effects, ops that write a persistable variable
// (training steps keep their updates; state that an op in test mode lists as output is not
// written), and every op that writes what a kept op after it reads. An op with sub-blocks reads,
// writes and affects what the ops in them do; the sub-blocks themselves are left alone, but for
// those that no kept op runs any more, which are emptied. So no fetched value and no parameter
// changes.
//
// Paddle runs every op unless told to prune; with its pruning, updates of parameters go, too.
// Keeps the order of ops and all declarations. Linear time.
absl::StatusOr<Program> Prune(Program program, const PassContext& context);

// Blocks that no op runs any more lose their ops: what these read may be gone.
void EmptyUnreachedBlocks(Program& program);

}  // namespace interp
