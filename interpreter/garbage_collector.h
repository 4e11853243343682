// GarbageCollector: frees variables during a run, by the counts of a plan.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/tensor.h"
#include "interpreter/observer.h"
#include "interpreter/plan.h"

namespace interp {

// Thread-safety: AfterInOrder and DropAll need exclusive use; After may be called concurrently.
class GarbageCollector {
 public:
  // Borrows plan and variables.
  GarbageCollector(const Plan& plan, const std::vector<Variable*>& variables);

  // Instruction `id` has finished: lowers the count of what it uses, drops the memory of those that
  // reach zero and sets their counts back for the next run. REQUIRES: called once for each
  // instruction of a run. `observer` may be null.
  void After(InstrId id, RunObserver* observer = nullptr, int worker = 0);
  // The same for a run in Plan::order, where the last use is known and nothing need be counted.
  void AfterInOrder(InstrId id, RunObserver* observer = nullptr);
  // Drops the memory of everything that is collectable, after a failed run.
  void DropAll();

 private:
  struct Use {
    Tensor* tensor;
    VarId var;
    int32_t ref_count;
  };

  const Plan& plan_;
  // Uses of instruction i are uses_[use_begins_[i]] ... uses_[use_begins_[i + 1] - 1].
  std::vector<int32_t> use_begins_;
  std::vector<Use> uses_;
  // The same for what is freed in order.
  std::vector<int32_t> free_begins_;
  std::vector<Tensor*> frees_;
  // By VarId; uses left. The thread that lowers it to zero must see what the others did (acq_rel).
  std::unique_ptr<std::atomic<int32_t>[]> counts_;
};

}  // namespace interp
