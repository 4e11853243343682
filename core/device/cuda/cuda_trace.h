// CudaTrace: what a GPU ran when, by pairs of events around kernels and copies.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "core/device/cuda/event_pool.h"
#include "core/device/device.h"

namespace interp::cuda {

// Thread-safety: all methods. The device is the thread's current one.
class CudaTrace {
 public:
  CudaTrace() : events_(cudaEventDefault) {}
  ~CudaTrace() { Clear(); }
  CudaTrace(const CudaTrace&) = delete;
  CudaTrace& operator=(const CudaTrace&) = delete;

  // Time 0 is now. `stream` is at rest.
  absl::Status Start(cudaStream_t stream);
  // What was traced, by start. REQUIRES: nothing of it is in flight.
  std::vector<DeviceSpan> Stop();

  // The start of a piece of work that is enqueued next on `stream`; nothing while no trace runs.
  std::optional<cudaEvent_t> Begin(cudaStream_t stream);
  // Its end. `span` says what it is, without times.
  void End(cudaEvent_t start, cudaStream_t stream, const DeviceSpan& span);
  // Instead of End: it was no piece of work.
  void Drop(cudaEvent_t start) { events_.Give(start); }

 private:
  struct Entry {
    cudaEvent_t start;
    cudaEvent_t end;
    DeviceSpan span;
  };
  void Clear();

  EventPool events_;
  std::atomic<bool> on_{false};
  std::mutex mutex_;  // guards what follows
  cudaEvent_t zero_ = nullptr;
  std::vector<Entry> entries_;
};

}  // namespace interp::cuda
