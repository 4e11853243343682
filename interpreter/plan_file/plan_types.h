// CheckPlanTypes: whether plans that were read say of variables and dtypes what their program does.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"
#include "interpreter/plan/plan.h"

namespace interp {

// InvalidArgument unless there is a plan of every block that runs, the variables of the program are
// as it declares and uses them, feeds, fetches and what the kernels of control flow set and read
// are those of its ops, and every instruction has the kernel, layout rule and output dtypes that
// its inputs give: a kernel reads and writes memory by these. Walks the instructions as
// SelectKernels does, without looking at order or lifetimes; those are VerifyPlans' part. Linear.
// REQUIRES: CheckPlansStructure(plans) is OK; instructions refer to ops that exist.
absl::Status CheckPlanTypes(const Program& program, const std::vector<Plan>& plans,
                            const OpRegistry& registry);

}  // namespace interp
