#include "interpreter/inspect/trace.h"

#include "core/base/steady_clock.h"
#include "core/comm/rings.h"

namespace interp {

void TraceRecorder::OnRunStart(int64_t now_ns) {
  const Plan& plan = core_.plan();
  trace_.executions.assign(plan.instructions.size(), {});
  trace_.freed_after.assign(plan.vars.size(), -1);
  running_.assign(CountInstructions(core_.plans()) - plan.instructions.size(), {});
  trace_.nested.clear();
  trace_.num_nested = 0;
  trace_.num_waits = 0;
  trace_.waits.clear();
  trace_.devices.clear();
  for (const std::shared_ptr<Device>& device : core_.devices()) {
    device->StartTrace();
    trace_.devices.push_back({.place = device->place(),
                              .start_ns = SteadyNowNs(),
                              .device_start_ns = device->NowNs(),
                              .spans = {}});
  }
  trace_.comm.clear();
  if (rings_ != nullptr) rings_->StartTrace();
  trace_.start_ns = trace_.end_ns = now_ns;
}

void TraceRecorder::OnRunEnd(int64_t now_ns) {
  trace_.end_ns = now_ns;
  for (size_t i = 0; i < trace_.devices.size(); ++i) {
    trace_.devices[i].spans = core_.devices()[i]->StopTrace();
  }
  if (rings_ != nullptr) trace_.comm = rings_->StopTrace();
}

RunTrace::Execution& TraceRecorder::Current(int32_t instruction) {
  const auto in_main = static_cast<int32_t>(trace_.executions.size());
  return instruction < in_main ? trace_.executions[instruction] : running_[instruction - in_main];
}

void TraceRecorder::OnStart(int32_t instruction, int /*worker*/, int64_t /*now_ns*/) {
  RunTrace::Execution& execution = Current(instruction);
  execution.host_bytes[0] = core_.memory().current_bytes;
  execution.device_bytes[0] = core_.device_memory().current_bytes;
}

void TraceRecorder::OnInstruction(int32_t instruction, int worker, int64_t start_ns,
                                  int64_t end_ns) {
  RunTrace::Execution& execution = Current(instruction);
  execution.worker = worker;
  execution.start_ns = start_ns;
  execution.end_ns = end_ns;
  execution.host_bytes[1] = core_.memory().current_bytes;
  execution.device_bytes[1] = core_.device_memory().current_bytes;
  if (instruction < static_cast<int32_t>(trace_.executions.size())) return;
  std::lock_guard<std::mutex> lock(mutex_);
  ++trace_.num_nested;
  if (trace_.nested.size() < kMaxNested) trace_.nested.push_back({instruction, execution});
}

void TraceRecorder::OnWaitEnd(int32_t instruction, int32_t event, int worker, int64_t start_ns,
                              int64_t end_ns) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++trace_.num_waits;
  if (trace_.waits.size() == kMaxNested) return;
  trace_.waits.push_back({.instruction = instruction,
                          .event = event,
                          .worker = worker,
                          .start_ns = start_ns,
                          .end_ns = end_ns});
}

void TraceRecorder::OnFree(VarId var, int32_t after, int /*worker*/) {
  if (after < static_cast<int32_t>(trace_.executions.size())) trace_.freed_after[var] = after;
}

}  // namespace interp
