// SymbolicShapes: dims of the variables of block 0 as far as they follow from constants and from
// each other. Declared dims of -1 tell nothing about whether two tensors have one shape; this does.
#pragma once

#include <optional>
#include <vector>

#include "core/program.h"
#include "passes/var_uses.h"

namespace interp {

// A dim: its size when not negative, else the name of an unknown one. Equal dims are equal in every
// run; different ones may be equal all the same.
using SymbolicDim = int64_t;
using SymbolicShape = std::vector<SymbolicDim>;

// By VarId; nullopt for variables that are not declared or written more than once. Parameters
// and feeds that are checked have the dims they declare; of other feeds only the rank is believed,
// since programs run with other sizes than they declare. Ops that are not understood give dims with
// new names. Linear time.
std::vector<std::optional<SymbolicShape>> FindSymbolicShapes(const Program& program,
                                                             const std::vector<VarUse>& uses);

}  // namespace interp
