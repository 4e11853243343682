// HostKernelLauncher: runs kernels of the host (kCpu rows of ops) as work of a device's stream.
//
// What a simulated device has in place of kernels of its own.
#pragma once

#include "core/device/device.h"
#include "core/op_def.h"

namespace interp {

// Thread-safety: as its stream's.
class HostKernelLauncher {
 public:
  virtual ~HostKernelLauncher() = default;
  // The arguments are captured now, and the kernel runs later in the order of the stream. Tensors
  // in device memory are captured by address only: who owns them may let go as soon as this
  // returns, as memory is handed on in stream order. Host tensors (kHostInput) are kept alive.
  // Outputs have shape, dtype and memory.
  // Errors: Internal when an argument lies on another device.
  virtual absl::Status LaunchHostKernel(KernelFn kernel, const BoundArgs& args, const void* attrs,
                                        const KernelContext::Services& services,
                                        const Work& work) = 0;
};

// The same on `stream`; Unimplemented where that runs kernels of its own alone.
absl::Status LaunchHostKernel(Stream& stream, KernelFn kernel, const BoundArgs& args,
                              const void* attrs, const KernelContext::Services& services,
                              const Work& work);

}  // namespace interp
