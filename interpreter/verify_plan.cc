#include "interpreter/verify_plan.h"

#include <atomic>

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

VerifyReport VerifyPlan(const Plan& plan, const VerifyOptions& options) {
  VerifyReport report;
  report.structure = CheckPlanStructure(plan);
  if (!report.structure.ok()) return report;
  report.instructions = static_cast<int64_t>(plan.instructions.size());
  verify::RunOrder order(plan);
  verify::CheckEdges(plan, report);
  verify::CheckEvents(plan, order, report);
  verify::CheckConflicts(plan, order, report);
  verify::CheckOverwritten(plan, report);
  verify::CheckFrees(plan, order, report);
  verify::CheckImplicitOrders(plan, order, report);
  verify::CheckPlaces(plan, report);
  if (options.count_redundancy) {
    report.redundant_edges = order.CountRedundantEdges(&report.all_redundancy_found);
    report.redundant_waits = order.CountRedundantWaits(&report.all_redundancy_found);
  }
  return report;
}

}  // namespace interp
