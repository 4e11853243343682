#include "interpreter/run/garbage_collector.h"

namespace interp {

GarbageCollector::GarbageCollector(const Plan& plan, const std::vector<Variable*>& variables,
                                   BufferCollector* buffers)
    : plan_(plan),
      buffers_(buffers),
      counts_(std::make_unique<std::atomic<int32_t>[]>(plan.vars.size())) {
  uses_.reserve(plan.gc_check.num_ids());
  for (const VarId var : plan.gc_check.ids) {
    uses_.push_back({TargetOf(var, variables), var, plan.ref_counts[var]});
  }
  frees_.reserve(plan.frees_in_order.num_ids());
  for (const VarId var : plan.frees_in_order.ids) frees_.push_back(TargetOf(var, variables));
  for (size_t var = 0; var < plan.ref_counts.size(); ++var) {
    counts_[var].store(plan.ref_counts[var], std::memory_order_relaxed);
  }
}

GarbageCollector::Target GarbageCollector::TargetOf(VarId var,
                                                    const std::vector<Variable*>& variables) const {
  return {variables[var], plan_.vars[var].kind == VarKind::kLodTensor};
}

inline void GarbageCollector::Free(const Target& target) {
  if (!target.tensor || buffers_ != nullptr) [[unlikely]]
    return FreeWhole(*target.variable);
  target.variable->tensor.DropMemory();
}

void GarbageCollector::FreeWhole(Variable& variable) {
  if (buffers_ != nullptr) {
    if (variable.tensor.has_memory()) buffers_->Add(variable.tensor.buffer());
    for (const Tensor& element : variable.array) {
      if (element.has_memory()) buffers_->Add(element.buffer());
    }
  }
  variable.DropValue();
}

void GarbageCollector::After(InstrId id, RunObserver* observer, int worker) {
  for (int32_t i = plan_.gc_check.begins[id]; i < plan_.gc_check.begins[id + 1]; ++i) {
    const Use& use = uses_[i];
    // A count of one from the start has nobody to race with.
    if (use.ref_count > 1) {
      if (counts_[use.var].fetch_sub(1, std::memory_order_acq_rel) > 1) continue;
      counts_[use.var].store(use.ref_count, std::memory_order_relaxed);
    }
    Free(use.target);
    if (observer != nullptr) [[unlikely]]
      observer->OnFree(use.var, plan_.first_number + id, worker);
  }
}

void GarbageCollector::AfterInOrder(InstrId id, RunObserver* observer, int worker) {
  const std::vector<int32_t>& begins = plan_.frees_in_order.begins;
  for (int32_t i = begins[id]; i < begins[id + 1]; ++i) Free(frees_[i]);
  if (observer != nullptr) [[unlikely]] {
    for (const VarId var : plan_.frees_in_order[id]) {
      observer->OnFree(var, plan_.first_number + id, worker);
    }
  }
}

void GarbageCollector::DropAll() {
  for (const Use& use : uses_) FreeWhole(*use.target.variable);
}

}  // namespace interp
