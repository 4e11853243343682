#include "core/device/device.h"

#include <utility>

namespace interp {

absl::string_view Name(WorkKind kind) {
  constexpr absl::string_view kNames[] = {"kernel", "h2d", "d2h", "d2d", "fill"};
  return kNames[static_cast<int>(kind)];
}

void WorkErrors::Report(int32_t tag, absl::Status status) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (first_.has_value()) return;
  first_ = WorkError{tag, std::move(status)};
  any_.store(true, std::memory_order_release);
}

std::optional<WorkError> WorkErrors::Get() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return first_;
}

std::optional<WorkError> WorkErrors::Take() {
  std::lock_guard<std::mutex> lock(mutex_);
  any_.store(false, std::memory_order_release);
  return std::exchange(first_, std::nullopt);
}

}  // namespace interp
