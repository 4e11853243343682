// TraceRecorder: when and where each instruction of a run ran, for trace viewers.
//
//   TraceRecorder recorder(*core);
//   core->Run(feeds, {.observer = &recorder});
//   write(ToChromeTrace(recorder.trace(), core->plan(), core->variables()));
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "interpreter/interpreter_core.h"

namespace interp {

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
  struct Wait {
    InstrId instruction = -1;  // as RunObserver::OnWaitStart has it
    int32_t event = -1;
    int32_t worker = 0;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
  };
  struct OnDevice {
    Place place;
    int64_t start_ns = 0;           // of the steady clock, when the device's trace began
    std::vector<DeviceSpan> spans;  // on the device's clock
  };

  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::vector<Execution> executions;  // by InstrId
  std::vector<InstrId> freed_after;   // by VarId; -1: not freed
  std::vector<Wait> waits;
  std::vector<OnDevice> devices;
};

// Keeps the last run and forgets the one before: memory is that of one run, linear in the plan,
// however often the core runs. Devices note their work while a run goes on.
//
// Thread-safety: as the core's: one run at a time, trace() between runs. Cost per instruction: four
// clock readings or so, and two looks at the pools.
class TraceRecorder final : public RunObserver {
 public:
  // Borrows the core.
  explicit TraceRecorder(const InterpreterCore& core) : core_(core) {}

  // Of the last run; after a failed one of what ran.
  const RunTrace& trace() const { return trace_; }

  void OnRunStart(int64_t now_ns) override;
  void OnRunEnd(int64_t now_ns) override;
  void OnStart(InstrId instruction, int worker, int64_t now_ns) override;
  void OnInstruction(InstrId instruction, int worker, int64_t start_ns, int64_t end_ns) override;
  void OnWaitEnd(InstrId instruction, int32_t event, int worker, int64_t start_ns,
                 int64_t end_ns) override;
  void OnFree(VarId var, InstrId after, int worker) override;

 private:
  const InterpreterCore& core_;
  // An instruction runs and a variable is freed once per run: their entries need no lock.
  RunTrace trace_;
  std::mutex mutex_;  // guards trace_.waits
};

// The trace in the JSON form of Chrome's trace events, which Perfetto and other viewers read:
// a process "host" with a thread per worker, a process per device with a thread per stream, a
// counter of memory in use, and arrows along the plan's edges that cross threads or streams.
// A simulated device's times are its own and have nothing to do with the host's beside them.
//
// `variables` of the core that ran, whose shapes are shown; may be empty.
std::string ToChromeTrace(const RunTrace& trace, const Plan& plan,
                          absl::Span<Variable* const> variables);

}  // namespace interp
