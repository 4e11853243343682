// Floats on the grid of whole numbers that their largest magnitude spans, and back.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/status.h"

namespace interp::cuda {

// All memory is the device's; functions enqueue on `stream`.
struct Quantization {
  const float* x = nullptr;
  int64_t size = 0;
  float bins = 127;              // the grid goes from -bins to bins
  bool round_half_even = false;  // then from -bins - 1; else ties go away from zero
  uint32_t* bits = nullptr;      // scratch, one number
  float* scale = nullptr;  // the largest magnitude of x; NaN where x has one; 0 without elements
  float* out = nullptr;    // whole numbers; may be x
};

// The same numbers as kernels/quant/quantize.h gives.
absl::Status QuantizeByMaximum(const Quantization& quantization, cudaStream_t stream);

// out[i] = x[i] * scale / range. `out` may be x.
absl::Status Dequantize(const float* x, const float* scale, float range, float* out, int64_t size,
                        cudaStream_t stream);

}  // namespace interp::cuda
