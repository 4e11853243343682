// GarbageCollector: frees variables during a run, by the counts of a plan.
//
// Host memory goes back to its pool as soon as nothing uses it. For device memory there are two
// policies, as in Paddle's executor: with kFast it goes back when the last instruction that uses it
// has been *launched*, as the pool hands it on in stream order (see StreamPool); with kEvent a
// collector thread waits until that instruction has *run*, so that free memory is idle memory.
// Either way, memory is collected until `threshold_bytes` have come together, and then given back
// at once.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/tensor.h"
#include "interpreter/device_set.h"
#include "interpreter/observer.h"
#include "interpreter/plan.h"

namespace interp {

enum class GcPolicy : int8_t { kFast, kEvent };

struct GcOptions {
  GcPolicy policy = GcPolicy::kFast;
  size_t threshold_bytes = 0;  // 0 and 1: give each buffer back at once
};

// Thread-safety: AfterInOrder and DropAll need exclusive use; After may be called concurrently.
class GarbageCollector {
 public:
  // Borrows plan, variables and devices, which are null for a plan without.
  GarbageCollector(const Plan& plan, const std::vector<Variable*>& variables, DeviceSet* devices,
                   const GcOptions& options);
  ~GarbageCollector();

  // Instruction `id` has finished: lowers the count of what it uses, drops the memory of those that
  // reach zero and sets their counts back for the next run. REQUIRES: called once for each
  // instruction of a run. `observer` may be null.
  void After(InstrId id, RunObserver* observer = nullptr, int worker = 0);
  // The same for a run in Plan::order, where the last use is known and nothing need be counted.
  void AfterInOrder(InstrId id, RunObserver* observer = nullptr);
  // Drops the memory of everything that is collectable, after a failed run.
  void DropAll();
  // Gives back what has been collected, whatever the threshold. After every run.
  void Flush();

 private:
  class Collector;  // what does more than drop at once

  void Free(Tensor& tensor);

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
  std::unique_ptr<Collector> collector_;  // null: memory is dropped at once
};

}  // namespace interp
