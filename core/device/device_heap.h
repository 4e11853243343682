// DeviceHeap: device memory for values that outlive a run, taken and given back at the source, and
// the copies to and from it.
#pragma once

#include <memory>
#include <mutex>

#include "core/buffer.h"
#include "core/device/device.h"
#include "core/tensor.h"

namespace interp {

// What SystemAllocator is for the host. Giving a buffer back waits for the whole device, so this is
// for parameters, not for what a run computes (see StreamPool). Copies that other devices make are
// waited for where StreamPool::RecordUse was called for them. Buffers keep their memory and the
// device alive, also beyond the heap. Thread-safety: all methods.
class DeviceHeap {
 public:
  explicit DeviceHeap(std::shared_ptr<Device> device);

  Allocator& allocator() { return *allocator_; }
  // A copy of a host tensor in memory of the heap, and of a tensor of the device in memory of
  // `allocator`. Block until it is there. Layout and LoD are kept. REQUIRES for Download: what
  // writes the tensor has finished.
  absl::StatusOr<Tensor> Upload(const Tensor& tensor);
  absl::StatusOr<Tensor> Download(const Tensor& tensor, Allocator& allocator);

 private:
  const std::shared_ptr<Device> device_;
  const std::shared_ptr<Allocator> allocator_;
  std::mutex mutex_;                // held during a copy; guards stream_
  std::unique_ptr<Stream> stream_;  // of all copies, made by the first
};

// A copy of a tensor in memory of a heap, such as a parameter that a plan keeps on its device;
// FailedPrecondition for any other device memory. Waits for the whole device first.
absl::StatusOr<Tensor> CopyToHost(const Tensor& tensor, Allocator& allocator);

// Puts such a copy, of the SystemAllocator, in the tensor's place. Does nothing to a tensor that is
// on the host or has no memory.
absl::Status MoveToHost(Tensor& tensor);

}  // namespace interp
