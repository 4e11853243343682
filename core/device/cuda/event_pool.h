// EventPool: events of one GPU, used again and again, as making one is a call of the driver.
#pragma once

#include <cuda_runtime.h>

#include <mutex>
#include <vector>

#include "core/status.h"

namespace interp::cuda {

// Thread-safety: Take and Give from any thread. The device is the thread's current one.
class EventPool {
 public:
  // `flags` of cudaEventCreateWithFlags.
  explicit EventPool(unsigned flags) : flags_(flags) {}
  // REQUIRES: all events were given back.
  ~EventPool() {
    for (const cudaEvent_t event : free_) cudaEventDestroy(event);
  }
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  // An event, which may have been recorded in an earlier life.
  absl::StatusOr<cudaEvent_t> Take();
  void Give(cudaEvent_t event) {
    std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(event);
  }

 private:
  const unsigned flags_;
  std::mutex mutex_;  // guards free_
  std::vector<cudaEvent_t> free_;
};

}  // namespace interp::cuda
