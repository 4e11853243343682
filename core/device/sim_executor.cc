#include "core/device/sim_executor.h"

#include <utility>

namespace interp {

void SimPoint::Finish() {
  std::lock_guard<std::mutex> guard(mutex_);
  done_.store(true, std::memory_order_release);
  finished_.notify_all();
}

void SimPoint::Block() {
  std::unique_lock<std::mutex> lock(mutex_);
  finished_.wait(lock, [this] { return done(); });
}

void SimTask::Run() {
  if (type == Type::kRecord) return point->Finish();
  if (type == Type::kWait || (errors != nullptr && errors->any())) return;
  absl::Status status = work();
  if (!status.ok() && errors != nullptr) errors->Report(tag, std::move(status));
}

}  // namespace interp
