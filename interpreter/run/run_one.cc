#include "interpreter/run/run_one.h"

#include "core/base/catching.h"
#include "core/base/steady_clock.h"

namespace interp {
namespace {

// Apart, so that the loops of runs that nobody watches stay small.
[[gnu::noinline]] absl::Status RunObserved(const RunParts& parts, InstrId id,
                                           const RunContext& context) {
  const int32_t number = parts.first_number + id;
  const int64_t start_ns = SteadyNowNs();
  context.observer->OnStart(number, context.worker, start_ns);
  absl::Status status = parts.runner->Run(id, context);
  context.observer->OnInstruction(number, context.worker, start_ns, SteadyNowNs());
  return status;
}

// Blocks for the work of devices that an instruction of the host needs.
[[gnu::noinline]] absl::Status WaitForDevices(const RunParts& parts, InstrId id,
                                              const RunContext& context) {
  RunObserver* const observer = context.observer;
  const int32_t number = parts.first_number + id;
  for (const int32_t event : parts.runner->HostWaits(id)) {
    const int64_t start_ns = observer != nullptr ? SteadyNowNs() : 0;
    if (observer != nullptr) observer->OnWaitStart(number, event, context.worker, start_ns);
    const absl::Status waited = parts.runner->WaitFor(event);
    if (observer != nullptr) {
      observer->OnWaitEnd(number, event, context.worker, start_ns, SteadyNowNs());
    }
    if (!waited.ok()) return parts.runner->Explain(id, waited);
  }
  return absl::OkStatus();
}

absl::Status RunOrThrow(const RunParts& parts, InstrId id, const RunContext& context) {
  if (parts.with_devices) INTERP_RETURN_IF_ERROR(WaitForDevices(parts, id, context));
  INTERP_RETURN_IF_ERROR(context.observer == nullptr ? parts.runner->Run(id, context)
                                                     : RunObserved(parts, id, context));
  if (parts.control->Expired()) [[unlikely]]
    return parts.runner->Explain(id, RunControl::TimedOut());
  return absl::OkStatus();
}

}  // namespace

// Whatever is thrown: schedulers count an instruction that has failed like any other.
void RunOne(const RunParts& parts, InstrId id, const RunContext& context) {
  if (parts.control->ShouldStop()) return;
  absl::Status status = Catching([&] { return RunOrThrow(parts, id, context); });
  if (!status.ok()) parts.control->Fail(std::move(status));
}

}  // namespace interp
