// StagingBuffers: pinned host memory that copies between a GPU and pageable memory go through.
//
// A copy from or to pageable memory makes the host wait, and its bytes take this way in the driver
// anyway (CUDA Runtime API, "API synchronization behavior"). Buffers are kept, so a warm run pins
// nothing.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <mutex>
#include <vector>

#include "core/device/cuda/event_pool.h"
#include "core/status.h"

namespace interp::cuda {

struct StagingBuffer {
  void* data = nullptr;
  int size_class = 0;
};

// Thread-safety: all methods. The device is the thread's current one, but for Give.
class StagingBuffers {
 public:
  // What one buffer holds at most; longer copies are cut into pieces.
  static constexpr size_t kMaxBytes = size_t{4} << 20;

  // `events` outlives it.
  explicit StagingBuffers(EventPool& events) : events_(events) {}
  // REQUIRES: no copy is in flight.
  ~StagingBuffers();
  StagingBuffers(const StagingBuffers&) = delete;
  StagingBuffers& operator=(const StagingBuffers&) = delete;

  // A buffer of at least `bytes`, up to kMaxBytes. Where much is in use already it waits for what
  // is in flight on `stream`. Errors: ResourceExhausted, and what the device is lost by.
  absl::StatusOr<StagingBuffer> Take(size_t bytes, cudaStream_t stream);
  // Nothing uses it any more. Calls nothing of CUDA.
  void Give(StagingBuffer buffer);
  // The same once the work of `stream` so far is done.
  absl::Status GiveAfter(StagingBuffer buffer, cudaStream_t stream);

 private:
  static constexpr int kSmallest = 12;  // 2^12 bytes
  static constexpr int kLargest = 22;
  static constexpr size_t kMostInUse = size_t{64} << 20;

  struct InFlight {
    StagingBuffer buffer;
    cudaEvent_t end;
  };

  static size_t SizeOf(int size_class) { return size_t{1} << size_class; }
  // Takes back what is no more in flight.
  void Reap();
  bool IsFull(int size_class);
  bool TakeFree(int size_class, StagingBuffer& buffer);

  EventPool& events_;
  std::mutex mutex_;  // guards what follows
  std::vector<void*> free_[kLargest + 1];
  std::vector<InFlight> in_flight_;
  size_t in_use_bytes_ = 0;
};

}  // namespace interp::cuda
