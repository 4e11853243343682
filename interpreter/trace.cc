#include "interpreter/trace.h"

#include <algorithm>

#include "interpreter/steady_clock.h"

namespace interp {
namespace {

std::vector<Place> DevicePlaces(const Plan& plan) {
  std::vector<Place> places;
  for (const PlanStream& stream : plan.streams) {
    if (stream.place.on_host()) continue;
    if (std::find(places.begin(), places.end(), stream.place) == places.end()) {
      places.push_back(stream.place);
    }
  }
  return places;
}

}  // namespace

void TraceRecorder::OnRunStart(int64_t now_ns) {
  const Plan& plan = core_.plan();
  trace_.executions.assign(plan.instructions.size(), {});
  trace_.freed_after.assign(plan.vars.size(), -1);
  trace_.waits.clear();
  trace_.devices.clear();
  for (const Place place : DevicePlaces(plan)) {
    Device* device = core_.device(place);
    if (device == nullptr) continue;
    device->StartTrace();
    trace_.devices.push_back({.place = place, .start_ns = SteadyNowNs(), .spans = {}});
  }
  trace_.start_ns = trace_.end_ns = now_ns;
}

void TraceRecorder::OnRunEnd(int64_t now_ns) {
  trace_.end_ns = now_ns;
  for (RunTrace::OnDevice& on_device : trace_.devices) {
    on_device.spans = core_.device(on_device.place)->StopTrace();
  }
}

void TraceRecorder::OnStart(InstrId instruction, int /*worker*/, int64_t /*now_ns*/) {
  RunTrace::Execution& execution = trace_.executions[instruction];
  execution.host_bytes[0] = core_.memory().current_bytes;
  execution.device_bytes[0] = core_.device_memory().current_bytes;
}

void TraceRecorder::OnInstruction(InstrId instruction, int worker, int64_t start_ns,
                                  int64_t end_ns) {
  RunTrace::Execution& execution = trace_.executions[instruction];
  execution.worker = worker;
  execution.start_ns = start_ns;
  execution.end_ns = end_ns;
  execution.host_bytes[1] = core_.memory().current_bytes;
  execution.device_bytes[1] = core_.device_memory().current_bytes;
}

void TraceRecorder::OnWaitEnd(InstrId instruction, int32_t event, int worker, int64_t start_ns,
                              int64_t end_ns) {
  std::lock_guard<std::mutex> lock(mutex_);
  trace_.waits.push_back({.instruction = instruction,
                          .event = event,
                          .worker = worker,
                          .start_ns = start_ns,
                          .end_ns = end_ns});
}

void TraceRecorder::OnFree(VarId var, InstrId after, int /*worker*/) {
  trace_.freed_after[var] = after;
}

}  // namespace interp
