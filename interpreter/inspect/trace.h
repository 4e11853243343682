// TraceRecorder: when and where each instruction of a run ran, for trace viewers.
//
//   TraceRecorder recorder(*core);
//   core->Run(feeds, {.observer = &recorder});
//   write(ToChromeTrace(recorder.trace(), *core));
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/comm/comm_span.h"
#include "core/device/device.h"
#include "interpreter/interpreter_core.h"

namespace interp {

class Rings;

// Executions in sub-blocks that a trace keeps: some 100 MB of JSON.
inline constexpr size_t kMaxNested = 200'000;

// One run. Times are nanoseconds of the steady clock but where a device's are named.
struct RunTrace {
  struct Execution {
    int32_t worker = -1;  // -1: it did not run
    int64_t start_ns = 0;
    int64_t end_ns = 0;  // of the kernel, or of launching it on a device
    // Handed out by the pools of the host and of the devices at start and end. Between end and the
    // next start, what it was last to use is freed.
    uint64_t host_bytes[2] = {0, 0};
    uint64_t device_bytes[2] = {0, 0};
  };
  // Of an instruction of a sub-block, once per activation.
  struct Nested {
    int32_t instruction = -1;  // as RunObserver has it
    Execution execution;
  };
  struct Wait {
    int32_t instruction = -1;  // as RunObserver::OnWaitStart has it
    int32_t event = -1;
    int32_t worker = 0;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
  };
  struct OnDevice {
    Place place;
    int64_t start_ns = 0;           // of the steady clock, when the device's trace began
    int64_t device_start_ns = 0;    // of the device's clock, then
    std::vector<DeviceSpan> spans;  // on the device's clock
  };

  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::vector<Execution> executions;  // of the main block, by InstrId
  std::vector<InstrId> freed_after;   // of the main block, by VarId; -1: not freed
  std::vector<Nested> nested;         // in the order of their ends; the first kMaxNested
  int64_t num_nested = 0;             // of all
  std::vector<Wait> waits;            // the first kMaxNested
  int64_t num_waits = 0;              // of all
  std::vector<OnDevice> devices;
  std::vector<CommSpan> comm;  // with other ranks; what ends within the run
};

// Keeps the last run and forgets the one before: memory is that of one run, linear in the plans and
// in what loops ran up to a bound, however often the core runs. Devices note their work while a run
// goes on.
//
// Thread-safety: as the core's: one run at a time, trace() between runs. Cost per instruction: four
// clock readings or so, and two looks at the pools.
class TraceRecorder final : public RunObserver {
 public:
  // Borrows the core, and the rings whose communication is to be seen; null: none.
  explicit TraceRecorder(const InterpreterCore& core, Rings* rings = nullptr)
      : core_(core), rings_(rings) {}

  // Of the last run; after a failed one of what ran.
  const RunTrace& trace() const { return trace_; }

  void OnRunStart(int64_t now_ns) override;
  void OnRunEnd(int64_t now_ns) override;
  void OnStart(int32_t instruction, int worker, int64_t now_ns) override;
  void OnInstruction(int32_t instruction, int worker, int64_t start_ns, int64_t end_ns) override;
  void OnWaitEnd(int32_t instruction, int32_t event, int worker, int64_t start_ns,
                 int64_t end_ns) override;
  void OnFree(VarId var, int32_t after, int worker) override;

 private:
  const InterpreterCore& core_;
  Rings* const rings_;
  RunTrace::Execution& Current(int32_t instruction);

  // An instruction of the main block runs and a variable is freed once per run, and one of a
  // sub-block is run by one thread at a time: their entries need no lock.
  RunTrace trace_;
  std::vector<RunTrace::Execution> running_;  // by number behind those of the main block
  std::mutex mutex_;                          // guards waits and nested of trace_
};

// The trace in the JSON form of Chrome's trace events, which Perfetto and other viewers read:
// a process "host" with a thread per worker and one per ring of ranks, a process per device with a
// thread per stream, a counter of memory in use, and arrows along the plan's edges that cross
// threads or streams. Simulated devices' times are their own, from when the first of them began,
// and have nothing to do with the host's beside them. Of a program of jobs
// (passes/train/micro_batches.h) a process "pipeline" has a thread per stage, with its jobs.
//
// `variables` gives those of a block of the core that ran, whose shapes are shown; may give none.
std::string ToChromeTrace(const RunTrace& trace, absl::Span<const Plan> plans,
                          absl::FunctionRef<absl::Span<Variable* const>(int32_t block)> variables);
std::string ToChromeTrace(const RunTrace& trace, const InterpreterCore& core);

}  // namespace interp
