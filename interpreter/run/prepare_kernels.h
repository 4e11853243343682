// PrepareKernels: what kernels keep between runs, made for all instructions side by side before the
// first of them runs.
//
// The first run of a network generates code and packs weights for one instruction after the other,
// which takes several times as long as the run itself. Shapes are known before: they follow from
// those of feeds and parameters. So the rows' KernelDef::prepare can be called on several threads.
#pragma once

#include <functional>

#include "absl/types/span.h"
#include "core/variable.h"
#include "interpreter/plan/plan.h"
#include "interpreter/run/instruction_runner.h"

namespace interp {

// Who will run the ops: so many workers, and so many threads within each op.
struct PrepareThreads {
  int num_workers = 1;
  int per_op = 1;
};

// Prepares the kernels of a block whose feeds, parameters and folded variables have their values,
// on as many threads as will run them. What depends on shapes that only a run can tell is left to
// it; so are errors. `variables` by VarId. Ends early when `stops`, which all of the threads ask,
// says so. REQUIRES: no instruction runs.
void PrepareKernels(const Plan& plan, absl::Span<Variable* const> variables,
                    InstructionRunner& runner, PrepareThreads run_by,
                    const std::function<bool()>& stops);

}  // namespace interp
