#include "interpreter/garbage_collector.h"

namespace interp {

GarbageCollector::GarbageCollector(const Plan& plan, const std::vector<Variable*>& variables)
    : plan_(plan),
      variables_(variables),
      counts_(std::make_unique<std::atomic<int32_t>[]>(plan.vars.size())) {}

void GarbageCollector::Reset() {
  for (size_t id = 0; id < plan_.ref_counts.size(); ++id) {
    counts_[id].store(plan_.ref_counts[id], std::memory_order_relaxed);
  }
}

void GarbageCollector::After(InstrId id) {
  for (const VarId var : plan_.gc_check[id]) {
    // A count of one from the start has nobody to race with.
    if (plan_.ref_counts[var] == 1 || counts_[var].fetch_sub(1, std::memory_order_acq_rel) == 1) {
      variables_[var]->tensor.DropMemory();
    }
  }
}

void GarbageCollector::AfterInOrder(InstrId id) {
  for (const VarId var : plan_.frees_in_order[id]) variables_[var]->tensor.DropMemory();
}

void GarbageCollector::DropAll() {
  for (size_t id = 0; id < plan_.ref_counts.size(); ++id) {
    if (plan_.ref_counts[id] > 0) variables_[id]->tensor.DropMemory();
  }
}

}  // namespace interp
