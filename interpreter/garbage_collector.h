// GarbageCollector: frees variables during a run, by the counts of a plan.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/tensor.h"
#include "interpreter/plan.h"

namespace interp {

// Thread-safety: AfterInOrder and DropAll need exclusive use; After may be called concurrently.
class GarbageCollector {
 public:
  // Borrows both.
  GarbageCollector(const Plan& plan, const std::vector<Variable*>& variables);

  // Sets the counts back for a run that uses After.
  void Reset();
  // Instruction `id` has finished: lowers the count of what it uses and drops the memory of those
  // that reach zero.
  void After(InstrId id);
  // The same for a run in Plan::order, where the last use is known and nothing need be counted.
  void AfterInOrder(InstrId id);
  // Drops the memory of everything that is collectable, after a failed run.
  void DropAll();

 private:
  const Plan& plan_;
  const std::vector<Variable*>& variables_;
  // By VarId; uses left. The thread that lowers it to zero must see what the others did (acq_rel).
  std::unique_ptr<std::atomic<int32_t>[]> counts_;
};

}  // namespace interp
