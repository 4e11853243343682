// batch_norm and its gradient.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// Images that lie as N x C x pixels, or as N x pixels x C.
struct ChannelShape {
  int64_t images = 0;
  int64_t channels = 0;
  int64_t pixels = 0;
  bool channels_last = false;

  constexpr int64_t per_channel() const { return images * pixels; }
  constexpr int64_t size() const { return per_channel() * channels; }
};

// Bytes of scratch memory that one call of the functions below takes.
size_t BatchNormWorkspace(const ChannelShape& shape);

// x and y are of the dtype, everything else is float32 and has one element a channel. Null outputs
// are not wanted.
struct BatchNormArguments {
  ChannelShape shape;
  const void* x = nullptr;
  const float* scale = nullptr;     // null: 1
  const float* bias = nullptr;      // null: 0
  const float* mean = nullptr;      // the running statistics
  const float* variance = nullptr;  // biased
  bool running = false;             // normalise with those
  float epsilon = 1e-5f;
  float momentum = 0.9f;                 // of the running statistics
  const float* momentum_data = nullptr;  // one float that wins over `momentum`
  bool relu = false;
  void* y = nullptr;               // may be x
  float* mean_out = nullptr;       // may be `mean`
  float* variance_out = nullptr;   // may be `variance`
  float* saved_mean = nullptr;     // of the batch; 0 with `running`
  float* saved_inverse = nullptr;  // 1 / sqrt(variance of the batch + epsilon); 0 with `running`
  void* workspace = nullptr;
};

// y = (x - mean) / sqrt(variance + epsilon) scale + bias by channel. A batch of one pixel has no
// variance and is passed through, as on the host. float32, float16 or bfloat16. Enqueued on
// `stream`.
absl::Status BatchNorm(DType dtype, const BatchNormArguments& arguments, cudaStream_t stream);

struct BatchNormGradientArguments {
  ChannelShape shape;
  const void* x = nullptr;
  const void* y_grad = nullptr;
  const float* scale = nullptr;     // null: 1
  const float* mean = nullptr;      // that y was normalised with
  const float* variance = nullptr;  // with `running`; otherwise 1 / sqrt(variance + epsilon)
  bool running = false;             // mean and variance do not depend on x
  float epsilon = 1e-5f;
  void* x_grad = nullptr;  // may be y_grad
  float* scale_grad = nullptr;
  float* bias_grad = nullptr;
  void* workspace = nullptr;
};
absl::Status BatchNormGradient(DType dtype, const BatchNormGradientArguments& arguments,
                               cudaStream_t stream);

}  // namespace interp::cuda
