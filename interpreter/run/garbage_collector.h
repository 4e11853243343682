// GarbageCollector: frees variables of a frame, by the counts of its plan.
//
// Host memory goes back to its pool as soon as nothing uses it. For device memory there are two
// policies, as in Paddle's executor: with kFast it goes back when the last instruction that uses it
// has been *launched*, as the pool hands it on in stream order (see StreamPool); with kEvent a
// collector thread waits until that instruction has *run*, so that free memory is idle memory.
// Either way, memory is collected until `threshold_bytes` have come together, and then given back
// at once (BufferCollector).
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/variable.h"
#include "interpreter/plan/plan.h"
#include "interpreter/run/buffer_collector.h"
#include "interpreter/run/observer.h"

namespace interp {

// Thread-safety: AfterInOrder and DropAll need exclusive use; After may be called concurrently.
class GarbageCollector {
 public:
  // Borrows plan, variables (by VarId) and `buffers`, which may be null: memory is dropped at once.
  GarbageCollector(const Plan& plan, const std::vector<Variable*>& variables,
                   BufferCollector* buffers);

  // Instruction `id` has finished: lowers the count of what it uses, drops the values of those that
  // reach zero and sets their counts back for the next activation. REQUIRES: called once for each
  // instruction of an activation. `observer` may be null.
  void After(InstrId id, RunObserver* observer = nullptr, int worker = 0);
  // The same for instructions run in Plan::order, where the last use is known and nothing need be
  // counted.
  void AfterInOrder(InstrId id, RunObserver* observer = nullptr, int worker = 0);
  // Drops everything that is collectable, after a failed activation.
  void DropAll();

 private:
  // A variable that may be freed. Tensors are told apart: they are nearly all there is.
  struct Target {
    Variable* variable;
    bool tensor;
  };
  struct Use {
    Target target;
    VarId var;
    int32_t ref_count;
  };

  Target TargetOf(VarId var, const std::vector<Variable*>& variables) const;
  void Free(const Target& target);
  void FreeWhole(Variable& variable);

  const Plan& plan_;
  BufferCollector* const buffers_;
  std::vector<Use> uses_;      // those of instruction i: as Plan::gc_check
  std::vector<Target> frees_;  // as Plan::frees_in_order
  // By VarId; uses left. The thread that lowers it to zero must see what the others did (acq_rel).
  std::unique_ptr<std::atomic<int32_t>[]> counts_;
};

}  // namespace interp
