#include "interpreter/run_one.h"

#include "core/steady_clock.h"

namespace interp {
namespace {

// Apart, so that the loops of runs that nobody watches stay small.
[[gnu::noinline]] absl::Status RunObserved(const RunParts& parts, InstrId id, bool infer_all,
                                           RunObserver& observer, int worker) {
  const int64_t start_ns = SteadyNowNs();
  observer.OnStart(id, worker, start_ns);
  absl::Status status = parts.runner->Run(id, infer_all);
  observer.OnInstruction(id, worker, start_ns, SteadyNowNs());
  return status;
}

// Blocks for the work of devices that an instruction of the host needs.
[[gnu::noinline]] void WaitForDevices(const RunParts& parts, InstrId id, RunObserver* observer,
                                      int worker) {
  for (const int32_t event : parts.runner->HostWaits(id)) {
    const int64_t start_ns = observer != nullptr ? SteadyNowNs() : 0;
    if (observer != nullptr) observer->OnWaitStart(id, event, worker, start_ns);
    parts.runner->WaitFor(event);
    if (observer != nullptr) observer->OnWaitEnd(id, event, worker, start_ns, SteadyNowNs());
  }
}

}  // namespace

void RunOne(const RunParts& parts, InstrId id, bool infer_all, RunObserver* observer, int worker) {
  if (parts.control->ShouldStop()) return;
  if (parts.with_devices) WaitForDevices(parts, id, observer, worker);
  absl::Status status = observer == nullptr ? parts.runner->Run(id, infer_all)
                                            : RunObserved(parts, id, infer_all, *observer, worker);
  if (!status.ok()) parts.control->Fail(std::move(status));
}

}  // namespace interp
