// CurrentDevice: makes a GPU the calling thread's current one, and the one before again at the end.
#pragma once

#include <cuda_runtime.h>

namespace interp::cuda {

// Whether to use the device makes no context. True where the driver does not say.
bool HasContext(int device);

// A former device without a context in this process stays replaced: to set it makes its context
// (CUDA Runtime API, cudaSetDevice), which takes memory of a GPU that nobody uses.
// Thread-safety: lives on one thread.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  // What went wrong when it was made.
  cudaError_t error() const { return error_; }

 private:
  int before_ = 0;
  bool changed_ = false;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace interp::cuda
