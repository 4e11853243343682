// AnyOp: whether a program has an op of some kind, for those who have nothing to do without one.
#pragma once

#include <algorithm>

#include "core/program.h"

namespace interp {

// Whether wanted(op) holds for an op of any block.
template <typename Wanted>
bool AnyOp(const Program& program, const Wanted& wanted) {
  return std::any_of(program.blocks.begin(), program.blocks.end(), [&](const Block& block) {
    return std::any_of(block.ops.begin(), block.ops.end(), wanted);
  });
}

}  // namespace interp
