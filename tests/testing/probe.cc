#include "tests/testing/probe.h"

#include <utility>

namespace interp::testing {

std::atomic<Probe*> Probe::active_{nullptr};

Probe::Probe() { active_.store(this, std::memory_order_release); }
Probe::~Probe() { active_.store(nullptr, std::memory_order_release); }

std::vector<int32_t> Probe::TakeTrace() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(trace_, {});
}

absl::Status Probe::Handle(int32_t tag) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    trace_.push_back(tag);
  }
  if (hook_) hook_(tag);
  if (fail_at_ == tag) return absl::InternalError(absl::StrCat("made to fail at tag ", tag));
  return absl::OkStatus();
}

}  // namespace interp::testing
