// DeviceHeap: device memory for values that outlive a run, taken and given back at the source.
#pragma once

#include <memory>

#include "core/buffer.h"
#include "core/device/device.h"
#include "core/tensor.h"

namespace interp {

// What SystemAllocator is for the host. Giving a buffer back waits for the whole device, so this is
// for parameters, not for what a run computes (see StreamPool). Buffers keep the heap and the
// device alive. Thread-safety: all methods.
std::shared_ptr<Allocator> MakeDeviceHeap(std::shared_ptr<Device> device);

// A copy of a host tensor in memory of `heap`, which is `device`'s, and the way back. Block until
// it is there. Layout and LoD are kept. REQUIRES for the way back: what writes the tensor has
// finished.
absl::StatusOr<Tensor> CopyToHeap(const Tensor& tensor, Device& device, Allocator& heap);
absl::StatusOr<Tensor> CopyToHost(const Tensor& tensor, Device& device, Allocator& allocator);
// The same for a tensor in memory of a heap, such as a parameter that a plan keeps on its device;
// FailedPrecondition for any other device memory. Waits for the whole device first.
absl::StatusOr<Tensor> CopyToHost(const Tensor& tensor, Allocator& allocator);

}  // namespace interp
