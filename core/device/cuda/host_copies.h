// HostCopies: copies on the host in the order of a stream, between staging buffers and where the
// bytes belong.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/buffer.h"
#include "core/device/cuda/staging_buffers.h"
#include "core/status.h"

namespace interp::cuda {

struct HostCopy {
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;
  BufferRef buffer;  // of the memory that is not the staging buffer's
  std::optional<StagingBuffer> staging = std::nullopt;  // of a copy to the host, done with it
};

// Those of one stream. A copy keeps its buffer until it is done; one to the host is among
// HostWrites until then and gives its staging buffer back.
//
// A stream of a lost device is not to be waited for, while the driver's thread may be amid a copy
// or begin one late. So the driver gets a number, which means nothing once the copy is over.
//
// Thread-safety: Enqueue from any thread.
class HostCopies {
 public:
  // `staging` outlives it.
  explicit HostCopies(StagingBuffers& staging) : staging_(staging) {}
  // Waits for a copy that runs; those that have not begun are never made.
  ~HostCopies() { Abandon(/*number=*/0); }
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // The device is the thread's current one. Errors: the driver's; the copy is not made then.
  absl::Status Enqueue(HostCopy copy, cudaStream_t stream);

 private:
  // What the driver calls, with a number as `data`.
  static void Run(void* data);
  // 0: all.
  void Abandon(uintptr_t number);
  void Finish(HostCopy& copy);

  StagingBuffers& staging_;
};

}  // namespace interp::cuda
