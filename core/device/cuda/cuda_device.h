// CudaDevice: a GPU of NVIDIA behind the interface of all devices, by the CUDA Runtime API.
//
// Part of libinterp_cuda.so. Streams, events and memory are CUDA's. Host memory that copies use is
// the caller's and mostly pageable, which would make them wait: they go through pinned buffers of
// the device (StagingBuffers), and a callback of the stream takes what came back to where it
// belongs.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "core/device/device.h"

namespace interp::cuda {

// Device `index` of this process; the same one as long as somebody holds it.
// Errors: NotFound when there is no such GPU, FailedPrecondition when the driver does not answer.
// Thread-safety: yes.
absl::StatusOr<std::shared_ptr<Device>> MakeCudaDevice(int index);

// The handle of a stream of a CudaDevice, for calls of CUDA and its libraries. REQUIRES: that.
cudaStream_t HandleOf(const Stream& stream);

// Within Stream::EnqueueKernel, as a part of its work: copies `bytes` bytes of the host to memory
// of the device, by way of pinned buffers. The host's may change at once. REQUIRES: a stream of a
// CudaDevice. Errors: FailedPrecondition while it is captured, and those of copies.
absl::Status UploadNow(Stream& stream, void* device, const void* host, size_t bytes);
// Whether the stream is captured (Stream::BeginCapture). REQUIRES: one of a CudaDevice.
bool IsCaptured(const Stream& stream);

}  // namespace interp::cuda
