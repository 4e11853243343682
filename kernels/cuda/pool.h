// Pooling over windows of images and its gradient.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/pool/pool_axis.h"

namespace interp::cuda {

// out = the maximum or the average of each window of x. Images lie as N x C x pixels, or with
// `channels_last` as N x pixels x C; float32, float16 or bfloat16, averages in float32. Enqueued on
// `stream`.
absl::Status PoolWindows(DType dtype, const nn::Pool& pool, bool channels_last, const void* x,
                         void* out, cudaStream_t stream);

struct PoolGradientArguments {
  nn::Pool pool;
  bool channels_last = false;
  const void* x = nullptr;    // of maxima
  const void* out = nullptr;  // of maxima
  const void* out_grad = nullptr;
  void* x_grad = nullptr;
};

// An average passes its gradient on in equal shares, a maximum to the first element of its window
// that has it. Gradients of an element are added in the order of their windows.
absl::Status PoolGradient(DType dtype, const PoolGradientArguments& arguments, cudaStream_t stream);

}  // namespace interp::cuda
