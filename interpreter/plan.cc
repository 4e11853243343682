#include "interpreter/plan.h"

#include "interpreter/analysis/dependencies.h"
#include "interpreter/analysis/events.h"
#include "interpreter/analysis/garbage_collection.h"
#include "interpreter/analysis/insert_transfers.h"
#include "interpreter/analysis/link.h"
#include "interpreter/analysis/select_kernels.h"
#include "interpreter/analysis/shrink.h"
#include "interpreter/analysis/storage.h"
#include "interpreter/analysis/streams.h"
#include "interpreter/analysis/variable_table.h"
#include "interpreter/verify_plan.h"

namespace interp {
namespace {

FeedSpec SpecOf(const Program& program, VarId id) {
  FeedSpec spec{.name = program.names[id]};
  for (const Var& var : program.blocks[0].vars) {
    if (var.id != id) continue;
    spec.dtype = var.dtype;
    spec.shape = Shape(absl::MakeConstSpan(var.dims));
    spec.check_shape = var.need_check_feed;
  }
  return spec;
}

// Reads columns and names of feeds and fetches off the feed and fetch ops.
absl::Status FindFeedsAndFetches(const Program& program, Plan& plan) {
  for (const Op& op : program.blocks[0].ops) {
    const bool feed = op.type == "feed";
    if (!feed && op.type != "fetch" && op.type != "fetch_v2") continue;
    const Slot* list = feed ? op.FindInput("X") : op.FindOutput("Out");
    const Slot* var = feed ? op.FindOutput("Out") : op.FindInput("X");
    AttrReader reader(op);
    const int32_t col = reader.Int("col", 0);
    if (list == nullptr || var == nullptr || list->args.size() != 1 || var->args.size() != 1) {
      return InvalidArgument(op.type, ": expected one argument in X and one in Out");
    }
    if (col < 0 || col >= static_cast<int32_t>(program.blocks[0].ops.size())) {
      return InvalidArgument(op.type, ": attribute 'col' is ", col);
    }
    if (feed) {
      if (col >= static_cast<int32_t>(plan.feeds.size())) plan.feeds.resize(col + 1);
      plan.feeds[col] = SpecOf(program, var->args[0]);
      plan.feed_list = list->args[0];
    } else {
      if (col >= static_cast<int32_t>(plan.fetches.size())) plan.fetches.resize(col + 1);
      plan.fetches[col] = program.names[var->args[0]];
      plan.fetch_list = list->args[0];
    }
  }
  return absl::OkStatus();
}

// Builds with assertions verify every plan.
absl::Status ProveOwnWork(const Plan& plan) {
#ifndef NDEBUG
  const VerifyReport report = VerifyPlan(plan, {.count_redundancy = false});
  if (!report.proved()) return absl::InternalError("analysis: plan " + ToText(plan, report));
#endif
  (void)plan;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Plan> BuildPlan(const Program& program, const PlanOptions& options,
                               const OpRegistry& registry) {
  if (program.blocks.empty()) return InvalidArgument("the program has no block");
  Plan plan;
  plan.options = options;
  INTERP_RETURN_IF_ERROR(FindFeedsAndFetches(program, plan));
  plan.vars = BuildVariableTable(program);
  plan.num_program_vars = static_cast<int32_t>(plan.vars.size());
  INTERP_RETURN_IF_ERROR(SelectKernels(program, registry, plan));
  INTERP_RETURN_IF_ERROR(InsertTransfers(registry, plan));
  AnalyzeStorage(plan.instructions, plan.vars);
  plan.edges = BuildDependencies(plan.instructions, plan.vars, options.sequential);
  AssignStreams(program, plan);
  ShrinkDependencies(plan.instructions.size(), plan.edges);
  LinkInstructions(plan);
  MarkDynamicShapes(plan);
  plan.ref_counts.assign(plan.vars.size(), 0);
  plan.gc_check.assign(plan.instructions.size(), {});
  plan.frees_in_order.assign(plan.instructions.size(), {});
  if (options.garbage_collection) PlanGarbageCollection(plan);
  PlaceEvents(plan);
  INTERP_RETURN_IF_ERROR(ProveOwnWork(plan));
  return plan;
}

}  // namespace interp
