// Whether the arguments of instructions that were read are those of their ops. Errors are
// InvalidArgument.
#pragma once

#include "core/program.h"
#include "core/status.h"
#include "interpreter/plan/plan.h"

namespace interp {

// As many arguments as the op has, and the variables that it names, for kernels count on both. A
// variable of the plan's own, such as a copy on a device, may stand for each. Outputs may be left
// out. REQUIRES: `instruction` was made of `op`.
absl::Status CheckOpArguments(const Op& op, const Plan& plan, const Instruction& instruction);

// Outputs use memory of inputs only as the op's definition declares for the kernel. Of a variable
// that is several inputs, one has to be declared. Persistable variables have their own memory: the
// input's may be the caller's, or of a pool that goes with the core.
absl::Status CheckDeclaredShares(const Plan& plan, const Instruction& instruction);

// Hidden arguments of `instruction`, which runs the block of `inner`, are what the block captures.
// A variable of the plan's own may stand for one that is only read.
absl::Status CheckCaptures(const Plan& plan, const Instruction& instruction, const Plan& inner);

}  // namespace interp
