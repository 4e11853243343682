// CheckPlanTypes: whether a plan that was read says of variables and dtypes what its program does.
#pragma once

#include "core/program.h"
#include "core/status.h"
#include "interpreter/plan.h"

namespace interp {

// InvalidArgument unless the variables of the program are as it declares them, feeds and fetches
// are those of its ops, and every instruction has the kernel, layout rule and output dtypes that
// its inputs give: a kernel reads and writes memory by these. Walks the instructions as
// SelectKernels does, without looking at order or lifetimes; those are VerifyPlan's part. Linear.
// REQUIRES: CheckPlanStructure(plan) is OK; instructions refer to ops that exist.
absl::Status CheckPlanTypes(const Program& program, const Plan& plan);

}  // namespace interp
