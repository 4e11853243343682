#include "core/device/sim_executor.h"

#include <utility>

#include "core/base/wait_until.h"

namespace interp {

void SimPoint::Finish() {
  std::lock_guard<std::mutex> guard(mutex_);
  done_.store(true, std::memory_order_release);
  finished_.notify_all();
}

bool SimPoint::Block(SimDeadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  return WaitUntil(finished_, lock, deadline, [this] { return done(); });
}

void SimTask::Run() {
  if (type == Type::kRecord) return point->Finish();
  if (type == Type::kWait || (errors != nullptr && errors->any())) return;
  absl::Status status = device != nullptr ? device->status() : absl::OkStatus();
  if (status.ok()) status = work();
  if (!status.ok() && errors != nullptr) errors->Report(tag, std::move(status));
}

}  // namespace interp
