// SelectKernels: the dtype and the kernel of every instruction.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "core/status.h"
#include "interpreter/plan/plan.h"

namespace interp {

// Chooses a kernel for every instruction of the plans of all blocks, from declared dtypes of feeds
// and persistables and the dtypes that flow from them; nothing is run. Follows the program: a
// sub-block is looked at where it runs, with the dtypes that its captures have there. Updates the
// dtypes of the plans' variables to what the writers produce; a settled variable keeps its first.
// Returns, by block and VarId, the dtypes when the block starts.
//
// An op that has one variable as input and as output writes a fresh variable `<name>@out<id>`,
// which an `assign` instruction then gives to the name, unless its definition lists the two as
// an inplace pair; the op of that instruction is appended to `inserted_ops`. A view of the variable
// itself is split as well: its shape would change while the op still reads it.
//
// Of several kernels that serve, one of the place's own goes before the host's, and one of the
// instruction's dtype before the kUndefined row.
absl::StatusOr<std::vector<std::vector<DType>>> SelectKernels(const Program& program,
                                                              const OpRegistry& registry,
                                                              std::vector<Plan>& plans);

// An instruction of an inserted op, whose arguments index `vars`, with dtypes and kernel. Errors
// are not prefixed.
absl::StatusOr<Instruction> MakeInstruction(const Op& op, const OpDef& def, Place place,
                                            std::vector<PlanVar>& vars);

// Chooses dtype, kernel and layout rule of an instruction whose arguments, attributes and place are
// set, and sets the dtypes of its outputs, in `vars`, too.
absl::Status SetTypes(const Op& op, Instruction& instruction, std::vector<PlanVar>& vars);

// The op that an instruction of `plan` was made of.
const Op& OpOf(const Program& program, const Plan& plan, const Instruction& instruction);

}  // namespace interp
