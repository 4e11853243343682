#include "interpreter/compile/build_plan.h"

#include "interpreter/analysis/bind_instructions.h"
#include "interpreter/analysis/blocks.h"
#include "interpreter/analysis/dependencies.h"
#include "interpreter/analysis/events.h"
#include "interpreter/analysis/feed_columns.h"
#include "interpreter/analysis/fold_constants.h"
#include "interpreter/analysis/garbage_collection.h"
#include "interpreter/analysis/homes.h"
#include "interpreter/analysis/insert_transfers.h"
#include "interpreter/analysis/link.h"
#include "interpreter/analysis/select_kernels.h"
#include "interpreter/analysis/shrink.h"
#include "interpreter/analysis/storage.h"
#include "interpreter/analysis/streams.h"
#include "interpreter/analysis/variable_table.h"
#include "interpreter/verify/verify_plan.h"

namespace interp {
namespace {

absl::Status ProveOwnWork(const std::vector<Plan>& plans) {
  if (!ProvesBuiltPlans()) return absl::OkStatus();
  const VerifyReport report = VerifyPlans(plans, {.count_redundancy = false});
  if (report.proved()) return absl::OkStatus();
  return absl::InternalError("analysis: plan " + ToText(plans, report));
}

// Everything about one block that needs of others no more than whether they have effects.
void Order(const Program& program, const std::vector<bool>& blocks_with_effects,
           std::vector<PlanStream>& streams, Plan& plan) {
  AnalyzeStorage(plan.instructions, plan.vars);
  plan.edges =
      BuildDependencies(plan.instructions, plan.vars, plan.options.sequential, blocks_with_effects);
  AssignStreams(program, streams, plan);
  ShrinkDependencies(plan.instructions.size(), plan.edges);
  LinkInstructions(plan);
  MarkDynamicShapes(plan);
  plan.ref_counts.assign(plan.vars.size(), 0);
  plan.gc_check = plan.frees_in_order = {};
  if (plan.options.garbage_collection) {
    PlanGarbageCollection(plan);
  } else {
    plan.gc_check.begins.assign(plan.instructions.size() + 1, 0);
    plan.frees_in_order.begins.assign(plan.instructions.size() + 1, 0);
  }
}

}  // namespace

absl::StatusOr<std::vector<Plan>> BuildPlans(const Program& program, const PlanOptions& options,
                                             const OpRegistry& registry) {
  if (program.blocks.empty()) return InvalidArgument("the program has no block");
  INTERP_ASSIGN_OR_RETURN(const BlockTree tree, FindBlocks(program, registry));
  std::vector<Plan> plans(program.blocks.size());
  for (const int32_t block : tree.order) {
    plans[block].block = block;
    plans[block].options = options;
    BuildVariableTable(program, tree, block, plans[block]);
  }
  INTERP_RETURN_IF_ERROR(FindFeedsAndFetches(program, tree, plans[0]));
  for (const int32_t block : tree.order) {
    INTERP_RETURN_IF_ERROR(BindInstructions(program, registry, block, plans));
  }
  INTERP_ASSIGN_OR_RETURN(const std::vector<std::vector<DType>> at_start,
                          SelectKernels(program, registry, plans));
  for (const int32_t block : tree.order) FoldConstants(tree, block, plans[block]);
  ChooseHomes(plans);
  const std::vector<bool> blocks_with_effects = BlocksWithEffects(plans);
  std::vector<PlanStream> streams;
  int32_t first_number = 0;
  for (const int32_t block : tree.order) {
    INTERP_RETURN_IF_ERROR(InsertTransfers(registry, at_start[block], plans[block]));
    Order(program, blocks_with_effects, streams, plans[block]);
    plans[block].first_number = first_number;
    first_number += static_cast<int32_t>(plans[block].instructions.size());
  }
  for (const int32_t block : tree.order) {
    plans[block].streams = streams;
    PlaceEvents(plans[block]);
  }
  INTERP_RETURN_IF_ERROR(ProveOwnWork(plans));
  return plans;
}

}  // namespace interp
