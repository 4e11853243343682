#include "core/device/cuda/host_writes.h"

namespace interp::cuda {

HostWrites& HostWrites::All() {
  static auto& writes = *new HostWrites;
  return writes;
}

void HostWrites::Begin(const Buffer* buffer) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++counts_[buffer];
}

void HostWrites::End(const Buffer* buffer) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto count = counts_.find(buffer);
  if (--count->second == 0) counts_.erase(count);
}

bool HostWrites::Pending(const Buffer* buffer) {
  std::lock_guard<std::mutex> lock(mutex_);
  return counts_.contains(buffer);
}

}  // namespace interp::cuda
