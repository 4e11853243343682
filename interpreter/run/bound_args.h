// BindArgs: the variables of one instruction as its OpDef's functions see them.
#pragma once

#include "absl/types/span.h"
#include "core/op_def.h"
#include "interpreter/plan/plan.h"

namespace interp {

// `variables` by VarId, null for @EMPTY@; borrowed.
BoundArgs BindArgs(const Plan& plan, const Instruction& instruction,
                   absl::Span<Variable* const> variables);

}  // namespace interp
