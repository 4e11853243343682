#include "core/device/cuda/event_pool.h"

#include "core/device/cuda/cuda_error.h"

namespace interp::cuda {

absl::StatusOr<cudaEvent_t> EventPool::Take() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      const cudaEvent_t event = free_.back();
      free_.pop_back();
      return event;
    }
  }
  cudaEvent_t event = nullptr;
  INTERP_RETURN_IF_ERROR(
      ToStatus(cudaEventCreateWithFlags(&event, flags_), "cannot create an event"));
  return event;
}

}  // namespace interp::cuda
