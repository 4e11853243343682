#include "core/device/host_kernels.h"

namespace interp {

absl::Status LaunchHostKernel(Stream& stream, KernelFn kernel, const BoundArgs& args,
                              const void* attrs, const KernelContext::Services& services,
                              const Work& work) {
  HostKernelLauncher* const launcher = stream.host_kernels();
  if (launcher == nullptr) {
    return Unimplemented(Name(stream.place()), " runs no kernels of the host");
  }
  return launcher->LaunchHostKernel(kernel, args, attrs, services, work);
}

}  // namespace interp
