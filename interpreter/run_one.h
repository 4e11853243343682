// RunOne: what every scheduler does with an instruction whose turn it is.
#pragma once

#include "interpreter/garbage_collector.h"
#include "interpreter/instruction_runner.h"
#include "interpreter/observer.h"
#include "interpreter/run_control.h"

namespace interp {

// What a scheduler works with; all borrowed.
struct RunParts {
  InstructionRunner* runner = nullptr;
  GarbageCollector* collector = nullptr;
  RunControl* control = nullptr;
  bool with_devices = false;  // the plan has instructions on devices
};

// Runs one instruction, after blocking for the work of devices it needs, unless the run is to stop;
// an error stops the run. `observer` may be null. Thread-safety: as InstructionRunner::Run.
void RunOne(const RunParts& parts, InstrId id, bool infer_all, RunObserver* observer, int worker);

}  // namespace interp
