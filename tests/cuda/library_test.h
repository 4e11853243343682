// What tests of libraries for GPUs have in common: temporary memory of the current GPU, as the pool
// of a stream hands it out.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "core/resource/workspace.h"

namespace interp::cuda_test {

// In the order of the null stream, with the alignment of a stream's pool.
class DeviceWorkspaces final : public Allocator {
 public:
  absl::StatusOr<BufferRef> Allocate(size_t size_bytes) override {
    auto buffer = std::make_unique<Buffer>();
    if (const cudaError_t error = cudaMallocAsync(&buffer->data, size_bytes, nullptr);
        error != cudaSuccess) {
      return absl::ResourceExhaustedError(cudaGetErrorName(error));
    }
    buffer->size_bytes = size_bytes;
    buffer->owner = this;
    ++taken_;
    return BufferRef::First(buffer.release());
  }
  MemoryStats stats() const override { return {.allocations = taken_}; }
  void ResetPeak() override {}

 private:
  void Free(Buffer* buffer) override {
    cudaFreeAsync(buffer->data, nullptr);
    delete buffer;
  }

  int64_t taken_ = 0;
};

}  // namespace interp::cuda_test
