// The gradient of layer_norm.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/take_workspace.h"

namespace interp::cuda {

// x, y_grad and x_grad have `rows` rows of `length` elements of the dtype. The rest is float32:
// `scale`, `scale_grad` and `bias_grad` of one row, `means` and `variances` (biased) of one value a
// row. Null: a scale of 1, gradients that are not wanted.
struct LayerNormGradientArguments {
  const void* x = nullptr;
  const void* y_grad = nullptr;
  const float* scale = nullptr;
  const float* means = nullptr;
  const float* variances = nullptr;
  void* x_grad = nullptr;
  float* scale_grad = nullptr;
  float* bias_grad = nullptr;
  int64_t rows = 0;
  int64_t length = 0;
  float epsilon = 0;
};

// With x' = (x - mean) / sqrt(variance + epsilon) and g = y_grad scale:
//   x_grad = (g - mean of g - x' mean of (g x')) / sqrt(variance + epsilon)
//   scale_grad = sum over rows of y_grad x',   bias_grad = sum over rows of y_grad
// float32, float16 or bfloat16; rows are summed in float32, columns in float64, as on the host.
// Columns of many rows take temporary memory. Enqueued on `stream`.
absl::Status LayerNormGradient(DType dtype, const LayerNormGradientArguments& arguments,
                               TakeWorkspace take_workspace, cudaStream_t stream);

}  // namespace interp::cuda
