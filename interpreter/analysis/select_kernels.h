// SelectKernels: ops become instructions, each with parsed attributes, dtype and kernel.
#pragma once

#include "core/op_def.h"
#include "core/status.h"
#include "interpreter/plan.h"

namespace interp {

// Chooses a kernel for every op of block 0 from declared dtypes of feeds and persistables and the
// dtypes that flow from them; nothing is run. Fills `plan.instructions` and updates the dtypes of
// `plan.vars` to what the writers produce. REQUIRES: options and vars are there.
//
// An op that has one variable as input and as output although its definition lists no such inplace
// pair writes a fresh variable `<name>@out<id>`, which a `share_data` instruction then gives to the
// name; its op is appended to `plan.inserted_ops`.
//
// An op runs on `options.place`, or where its `op_device` attribute says: "cpu"; "sim:1"; any text
// with "gpu", "xpu" or "npu" in it means the plan's own place. What cannot run on a device runs on
// the host, and its type is added to `plan.fallbacks`. Another text is an error, as in Paddle. Of
// several kernels that serve, one of the place's own goes before the host's, and one of the
// instruction's dtype before the kUndefined row.
absl::Status SelectKernels(const Program& program, const OpRegistry& registry, Plan& plan);

// Makes one instruction of an op whose arguments index `vars`, and sets the dtypes of its outputs.
// Errors are not prefixed.
absl::StatusOr<Instruction> MakeInstruction(const Op& op, const OpDef& def, Place place,
                                            std::vector<PlanVar>& vars);

// The second half of MakeInstruction: chooses dtype, kernel and layout rule of an instruction whose
// arguments, attributes and place are set, and sets the dtypes of its outputs, in `vars`, too.
absl::Status SetTypes(const Op& op, Instruction& instruction, std::vector<PlanVar>& vars);

// Types of ops in any block that `registry` does not know, sorted, without feed and fetch.
std::vector<std::string> UnsupportedOps(const Program& program, const OpRegistry& registry);

}  // namespace interp
