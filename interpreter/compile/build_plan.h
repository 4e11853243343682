// BuildPlans: a program becomes plans, one for each block that runs.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"
#include "interpreter/plan/plan.h"

namespace interp {

// Analyses the blocks of `program` that run, from block 0 on, which has feed and fetch ops
// (passes/insert_feed_fetch). The result is by block; plans of blocks that never run are empty.
// Errors name block, op, index and slot: InvalidArgument for malformed ops, Unimplemented for ops,
// dtypes or places without a kernel; all missing ops are listed in one message. Time and memory are
// linear in ops, arguments and edges.
absl::StatusOr<std::vector<Plan>> BuildPlans(const Program& program, const PlanOptions& options,
                                             const OpRegistry& registry);

}  // namespace interp
