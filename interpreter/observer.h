// RunObserver: hooks for profiles, traces and progress.
#pragma once

#include <cstdint>

#include "interpreter/instruction.h"

namespace interp {

// Called from the thread that ran the instruction, so implementations must be safe for concurrent
// calls with different `worker`. Without an observer a run reads no clock.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // `worker` is 0 for the thread that called Run, 1 and up for the threads of the work queue.
  // Times are nanoseconds of the steady clock.
  virtual void OnInstruction(InstrId instruction, int worker, int64_t start_ns, int64_t end_ns) = 0;
};

}  // namespace interp
