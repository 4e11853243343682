// Images at another size: nearest and linear interpolation along depth, height and width, with the
// gradients.
#pragma once

#include <cuda_runtime.h>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/tensor/resample.h"

namespace interp::cuda {

struct ResampleArguments {
  const void* in = nullptr;
  void* out = nullptr;
  ImageView view;
  CoordinateMap maps[3];  // of depth, height and width
  bool nearest = false;   // else linear
};

// out = `in`, of view.in, at the size of view.out. Nearest elements are copied, of any dtype;
// linear interpolation takes float32, float64, float16 or bfloat16, those of 16 bits in float32.
// Enqueued on `stream`.
absl::Status Resample(DType dtype, const ResampleArguments& arguments, cudaStream_t stream);

// The gradient of Resample: `in` has the size view.out, and each element of `out`, of view.in, is
// the sum, in an order that is always the same, of what it gave to elements of it. Of float32,
// float64, float16 or bfloat16. Enqueued on `stream`.
absl::Status ResampleGradient(DType dtype, const ResampleArguments& arguments, cudaStream_t stream);

}  // namespace interp::cuda
