#include "core/device/cuda/current_device.h"

#include <cuda.h>

namespace interp::cuda {
namespace {

using GetContextState = decltype(&cuDevicePrimaryCtxGetState);

// Found at run time, so that nothing is linked with the driver. Null: it has none.
GetContextState FindGetContextState() {
  constexpr unsigned kSinceVersion = 7000;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error = cudaGetDriverEntryPointByVersion(
      "cuDevicePrimaryCtxGetState", &function, kSinceVersion, cudaEnableDefault, &result);
  if (error != cudaSuccess) cudaGetLastError();
  if (error != cudaSuccess || result != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<GetContextState>(function);
}

}  // namespace

bool HasContext(int device) {
  static const GetContextState kGetState = FindGetContextState();
  unsigned flags = 0;
  int active = 0;
  return kGetState == nullptr || kGetState(device, &flags, &active) != CUDA_SUCCESS || active != 0;
}

CurrentDevice::CurrentDevice(int device) {
  error_ = cudaGetDevice(&before_);
  if (error_ != cudaSuccess || before_ == device) return;
  error_ = cudaSetDevice(device);
  changed_ = error_ == cudaSuccess;
}

CurrentDevice::~CurrentDevice() {
  if (!changed_ || !HasContext(before_)) return;
  if (cudaSetDevice(before_) != cudaSuccess) cudaGetLastError();
}

}  // namespace interp::cuda
