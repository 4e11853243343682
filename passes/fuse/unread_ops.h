// Ops that nothing is left to read of.
#pragma once

#include <vector>

#include "passes/pass.h"

namespace interp {

// Drops the ops of block 0 that write one of `passed`, in whose place others are read now, where
// nobody reads any result of theirs. Linear time.
Program WithoutUnread(Program program, const OpRegistry& ops, const std::vector<VarId>& passed);

}  // namespace interp
