#include "interpreter/verify/verify_plan.h"

#include <atomic>

#include "interpreter/analysis/dependencies.h"
#include "interpreter/verify/checks.h"
#include "interpreter/verify/plan_structure.h"

namespace interp {
namespace {

#ifdef INTERP_PROVE_PLANS
std::atomic<bool> proves_built_plans{true};
#else
std::atomic<bool> proves_built_plans{false};
#endif

}  // namespace

namespace verify {

void Add(VerifyReport& report, Violation violation) {
  ++report.num_violations;
  if (report.violations.size() < kMaxReportedViolations) {
    report.violations.push_back(std::move(violation));
  }
}

}  // namespace verify

bool ProvesBuiltPlans() { return proves_built_plans.load(std::memory_order_relaxed); }
void ProveBuiltPlans(bool on) { proves_built_plans.store(on, std::memory_order_relaxed); }

namespace {

// Checks a plan that hangs together.
void Check(const Plan& plan, const std::vector<bool>& blocks_with_effects,
           const VerifyOptions& options, VerifyReport& report) {
  report.blocks = 1;
  report.instructions = static_cast<int64_t>(plan.instructions.size());
  verify::RunOrder order(plan);
  verify::CheckEdges(plan, report);
  verify::CheckEvents(plan, order, report);
  verify::CheckConflicts(plan, order, report);
  verify::CheckOverwritten(plan, report);
  verify::CheckFrees(plan, order, report);
  verify::CheckImplicitOrders(plan, blocks_with_effects, order, report);
  verify::CheckPlaces(plan, report);
  verify::CheckCaptures(plan, report);
  if (options.count_redundancy) {
    report.redundant_edges = order.CountRedundantEdges(&report.all_redundancy_found);
    report.redundant_waits = order.CountRedundantWaits(&report.all_redundancy_found);
  }
}

void AddReport(VerifyReport& sum, VerifyReport of_block, int32_t block) {
  for (Violation& violation : of_block.violations) {
    violation.block = block;
    if (sum.violations.size() < kMaxReportedViolations) {
      sum.violations.push_back(std::move(violation));
    }
  }
  constexpr int64_t VerifyReport::*kCounts[] = {
      &VerifyReport::num_violations,  &VerifyReport::blocks,
      &VerifyReport::instructions,    &VerifyReport::edges,
      &VerifyReport::pairs,           &VerifyReport::pairs_between_runs,
      &VerifyReport::variables,       &VerifyReport::shared_storages,
      &VerifyReport::frees,           &VerifyReport::implicit_orders,
      &VerifyReport::events,          &VerifyReport::waits,
      &VerifyReport::redundant_edges, &VerifyReport::redundant_waits};
  for (const auto count : kCounts) sum.*count += of_block.*count;
  sum.all_redundancy_found = sum.all_redundancy_found && of_block.all_redundancy_found;
}

}  // namespace

VerifyReport VerifyPlan(const Plan& plan, const VerifyOptions& options) {
  VerifyReport report;
  report.structure = CheckPlanStructure(plan);
  if (!report.structure.ok()) return report;
  Check(plan, BlocksWithEffects(absl::MakeConstSpan(&plan, 1)), options, report);
  return report;
}

VerifyReport VerifyPlans(absl::Span<const Plan> plans, const VerifyOptions& options) {
  VerifyReport report;
  report.structure = CheckPlansStructure(plans);
  if (!report.structure.ok()) return report;
  const std::vector<bool> blocks_with_effects = BlocksWithEffects(plans);
  std::vector<int32_t> open = {0};
  while (!open.empty()) {
    const Plan& plan = plans[open.back()];
    open.pop_back();
    VerifyReport of_block;
    Check(plan, blocks_with_effects, options, of_block);
    AddReport(report, std::move(of_block), plan.block);
    for (const Instruction& instruction : plan.instructions) {
      if (instruction.sub_block >= 0) open.push_back(instruction.sub_block);
    }
  }
  return report;
}

}  // namespace interp
