// EachArgument: the arguments of an op's inputs or outputs as one range.
#pragma once

#include <ranges>

#include "core/program.h"

namespace interp {

// The arguments of all slots, in their order; they can be changed where the slots can:
//
//   for (const VarId id : EachArgument(op.inputs)) ++reads[id];
//   for (VarId& id : EachArgument(op.outputs)) id = renamed[id];
//
// `slots`: a std::vector<Slot>, const or not, which the range borrows.
template <typename Slots>
auto EachArgument(Slots& slots) {
  return slots | std::views::transform(&Slot::args) | std::views::join;
}

// Those that are variables: without the empty name.
inline auto EachNamedArgument(const Program& program, const std::vector<Slot>& slots) {
  return EachArgument(slots) |
         std::views::filter([&program](VarId id) { return program.NameOf(id) != kEmptyVarName; });
}

}  // namespace interp
