// BindInstructions: ops become instructions, with arguments and attributes.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "core/status.h"
#include "interpreter/analysis/blocks.h"
#include "interpreter/plan/plan.h"

namespace interp {

// Fills `plan.instructions` with one per op of block plan.block: arguments by the definition's
// slots, attributes parsed once, places, shared memory, hidden arguments of sub-blocks. Dtypes and
// kernels are SelectKernels' part. `plans` are those of all blocks, with their variables.
//
// An op runs on `options.place`, or where its `op_device` attribute says: "cpu"; "sim:1"; any text
// with "gpu", "xpu" or "npu" in it means the plan's own place. What cannot run on a device runs on
// the host, and its type is added to `plan.fallbacks`. Another text is an error, as in Paddle.
absl::Status BindInstructions(const Program& program, const OpRegistry& registry, int32_t block,
                              std::vector<Plan>& plans);

// InvalidArgument when an argument is an array, a rank table or no value at all (a list of feeds, a
// reader) where the definition takes a tensor, or the other way round (the kernel would read what
// is not there), when one variable is two outputs, or when arrays are used on a device.
// Unimplemented for a persistable array, whose elements would be memory of one core.
absl::Status CheckKinds(const Instruction& instruction, const std::vector<PlanVar>& vars);

// Plan::entries, entry_args and results of a block.
struct BlockInterface {
  std::vector<VarId> entries;
  std::vector<int32_t> entry_args;
  std::vector<VarId> results;
};
// Those of the block of `inner`, which `instruction`, made of `op`, runs. InvalidArgument when the
// block has no such variables or the op no such arguments.
absl::StatusOr<BlockInterface> InterfaceOf(const Program& program, const Op& op,
                                           const Instruction& instruction, const Plan& inner);

// An instruction of an inserted op, whose arguments index `vars`: bound as above, nothing split.
// Errors are not prefixed.
absl::StatusOr<Instruction> BindInsertedOp(const Op& op, const OpDef& def, Place place,
                                           const std::vector<PlanVar>& vars);

// Adds an op type to the plan's fallbacks unless it is there.
void AddFallback(Plan& plan, absl::string_view type);

}  // namespace interp
