// group_norm, instance_norm (a group for each channel) and their gradients.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/batch_norm.h"

namespace interp::cuda {

// How statistics are stored.
enum class StoredVariance : int8_t {
  kVariance,  // biased
  kInverse,   // 1 / sqrt(variance + epsilon)
};

// All arrays are of one dtype. Images have `groups` groups of neighbouring channels; `scale` and
// `bias` have one element a channel, `mean` and `variance` one a group of each image. Those that
// say so may be null.
struct GroupNormArguments {
  ChannelShape shape;
  int64_t groups = 1;  // divides the channels
  const void* x = nullptr;
  const void* scale = nullptr;  // null: 1
  const void* bias = nullptr;   // null: 0
  float epsilon = 1e-5f;
  StoredVariance stored = StoredVariance::kVariance;
  void* y = nullptr;         // may be x
  void* mean = nullptr;      // null: not wanted
  void* variance = nullptr;  // null: not wanted
};

// y = (x - mean) / sqrt(variance + epsilon) scale + bias with the moments of each group of an
// image, which are added up in float64. Of float32 or float64. Enqueued on `stream`.
absl::Status GroupNorm(DType dtype, const GroupNormArguments& arguments, cudaStream_t stream);

struct GroupNormGradArguments {
  ChannelShape shape;
  int64_t groups = 1;
  const void* x = nullptr;
  const void* y_grad = nullptr;
  const void* scale = nullptr;  // null: 1
  const void* mean = nullptr;
  const void* variance = nullptr;
  float epsilon = 1e-5f;
  StoredVariance stored = StoredVariance::kVariance;
  bool centers = true;     // the mean of y_grad scale counts
  void* x_grad = nullptr;  // may be y_grad; null: not wanted, nor are the others
  void* scale_grad = nullptr;
  void* bias_grad = nullptr;
  double* sums = nullptr;  // scratch memory: 2 a channel of each image
};
absl::Status GroupNormGrad(DType dtype, const GroupNormGradArguments& arguments,
                           cudaStream_t stream);

}  // namespace interp::cuda
