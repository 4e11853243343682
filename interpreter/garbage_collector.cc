#include "interpreter/garbage_collector.h"

namespace interp {

GarbageCollector::GarbageCollector(const Plan& plan, const std::vector<Variable*>& variables)
    : plan_(plan),
      use_begins_(1, 0),
      free_begins_(1, 0),
      counts_(std::make_unique<std::atomic<int32_t>[]>(plan.vars.size())) {
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    for (const VarId var : plan.gc_check[i]) {
      uses_.push_back({&variables[var]->tensor, var, plan.ref_counts[var]});
    }
    use_begins_.push_back(static_cast<int32_t>(uses_.size()));
    for (const VarId var : plan.frees_in_order[i]) frees_.push_back(&variables[var]->tensor);
    free_begins_.push_back(static_cast<int32_t>(frees_.size()));
  }
  for (size_t var = 0; var < plan.ref_counts.size(); ++var) {
    counts_[var].store(plan.ref_counts[var], std::memory_order_relaxed);
  }
}

void GarbageCollector::After(InstrId id, RunObserver* observer, int worker) {
  for (int32_t i = use_begins_[id]; i < use_begins_[id + 1]; ++i) {
    const Use& use = uses_[i];
    // A count of one from the start has nobody to race with.
    if (use.ref_count > 1) {
      if (counts_[use.var].fetch_sub(1, std::memory_order_acq_rel) > 1) continue;
      counts_[use.var].store(use.ref_count, std::memory_order_relaxed);
    }
    use.tensor->DropMemory();
    if (observer != nullptr) observer->OnFree(use.var, id, worker);
  }
}

void GarbageCollector::AfterInOrder(InstrId id, RunObserver* observer) {
  for (int32_t i = free_begins_[id]; i < free_begins_[id + 1]; ++i) frees_[i]->DropMemory();
  if (observer == nullptr) return;
  for (const VarId var : plan_.frees_in_order[id]) observer->OnFree(var, id, /*worker=*/0);
}

void GarbageCollector::DropAll() {
  for (const Use& use : uses_) use.tensor->DropMemory();
}

}  // namespace interp
