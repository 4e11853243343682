// layer_norm.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// `x` and `y` have `rows` rows of `length` elements, of float32, float16 or bfloat16. The rest is
// float32: `scale` and `bias` of one row, `means` and `variances` (biased) of one value a row. Each
// of the four may be null.
struct LayerNormArguments {
  const void* x = nullptr;
  const float* scale = nullptr;
  const float* bias = nullptr;
  void* y = nullptr;
  float* means = nullptr;
  float* variances = nullptr;
  int64_t rows = 0;
  int64_t length = 0;
  float epsilon = 0;
};

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias, row by row. `y` may be `x`. Enqueued on
// `stream`.
absl::Status LayerNorm(DType dtype, const LayerNormArguments& arguments, cudaStream_t stream);

}  // namespace interp::cuda
