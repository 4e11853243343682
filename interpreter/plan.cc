#include "interpreter/plan.h"

#include "interpreter/analysis/dependencies.h"
#include "interpreter/analysis/events.h"
#include "interpreter/analysis/feed_columns.h"
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

absl::Status ProveOwnWork(const Plan& plan) {
  if (!ProvesBuiltPlans()) return absl::OkStatus();
  const VerifyReport report = VerifyPlan(plan, {.count_redundancy = false});
  if (report.proved()) return absl::OkStatus();
  return absl::InternalError("analysis: plan " + ToText(plan, report));
}

std::vector<DType> DTypesOf(const std::vector<PlanVar>& vars) {
  std::vector<DType> dtypes;
  dtypes.reserve(vars.size());
  for (const PlanVar& var : vars) dtypes.push_back(var.dtype);
  return dtypes;
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
  const std::vector<DType> declared = DTypesOf(plan.vars);
  INTERP_RETURN_IF_ERROR(SelectKernels(program, registry, plan));
  INTERP_RETURN_IF_ERROR(InsertTransfers(registry, declared, plan));
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
