// RunOne: what every scheduler does with an instruction whose turn it is.
#pragma once

#include "interpreter/run/garbage_collector.h"
#include "interpreter/run/instruction_runner.h"
#include "interpreter/run/observer.h"
#include "interpreter/run/run_control.h"

namespace interp {

// What a scheduler works with; all borrowed.
struct RunParts {
  InstructionRunner* runner = nullptr;
  GarbageCollector* collector = nullptr;
  RunControl* control = nullptr;
  int32_t first_number = 0;   // of the plan's instructions, for observers
  bool with_devices = false;  // the plan has instructions on devices
};

// Runs one instruction, after blocking for the work of devices it needs, unless the run is to stop;
// an error stops the activation. Thread-safety: as InstructionRunner::Run.
void RunOne(const RunParts& parts, InstrId id, const RunContext& context);

}  // namespace interp
