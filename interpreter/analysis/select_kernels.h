// SelectKernels: ops become instructions, each with parsed attributes, dtype and kernel.
#pragma once

#include "core/op_def.h"
#include "core/status.h"
#include "interpreter/plan.h"

namespace interp {

// Chooses a kernel for every op of block 0 from declared dtypes of feeds and persistables and the
// dtypes that flow from them; nothing is run. Updates `vars[].dtype` to what the writers produce.
// A kernel is the row of OpDef::kernels with the instruction's dtype, else the kUndefined row.
//
// An op that has one variable as input and as output although its definition lists no such inplace
// pair writes a fresh variable `<name>@out<id>`, which a `share_data` instruction then gives to the
// name; its op is appended to `inserted_ops`.
absl::StatusOr<std::vector<Instruction>> SelectKernels(const Program& program,
                                                       const OpRegistry& registry,
                                                       std::vector<PlanVar>& vars,
                                                       std::vector<Op>& inserted_ops);

// Makes one instruction of an op whose arguments index `vars`, and sets the dtypes of its outputs.
// Errors are not prefixed.
absl::StatusOr<Instruction> MakeInstruction(const Op& op, const OpDef& def,
                                            std::vector<PlanVar>& vars);

// Types of ops in any block that `registry` does not know, sorted, without feed and fetch.
std::vector<std::string> UnsupportedOps(const Program& program, const OpRegistry& registry);

}  // namespace interp
