// BuildPlans: a program becomes plans, one for each block that runs.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"
#include "interpreter/plan/plan.h"

namespace interp {

// The analysis steps in their order. Those in the first group see all blocks, those in the second
// one block after the other.
//   FindBlocks             which blocks run, whose variables they use
//   BuildVariableTable     names to dense ids, who is persistable, captured, declared how
//   FindFeedsAndFetches    what comes in and goes out by which column or position
//   BindInstructions       op -> instruction with arguments and parsed attributes
//   SelectKernels          dtypes and kernels, through sub-blocks
//   FoldConstants          what needs to run once only, as it depends on constants alone
//   ChooseHomes            where the memory of each variable lies
//
//   InsertTransfers        copies, casts and layout changes, one per source version
//   AnalyzeStorage         which variables share memory
//   BuildDependencies      hazards over variables and storage, then implicit orders
//   AssignStreams          queue, stream and priority per instruction; order within a stream
//   ShrinkDependencies     marks edges that others imply
//   LinkInstructions       successor lists, counts, the trace order
//   MarkDynamicShapes      whose shapes have to be inferred every time
//   PlanGarbageCollection  last uses: what is freed when
//   PlaceEvents            what to record and to wait for where device work crosses streams
//
// Analyses the blocks of `program` that run, from block 0 on, which has feed and fetch ops
// (passes/insert_feed_fetch). The result is by block; plans of blocks that never run are empty.
// Errors name block, op, index and slot: InvalidArgument for malformed ops, Unimplemented for ops,
// dtypes or places without a kernel; all missing ops are listed in one message. Time and memory are
// linear in ops, arguments and edges.
absl::StatusOr<std::vector<Plan>> BuildPlans(const Program& program, const PlanOptions& options,
                                             const OpRegistry& registry);

}  // namespace interp
