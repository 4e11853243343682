// Running sums along lines.
#pragma once

#include <cuda_runtime.h>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/line_shape.h"

namespace interp::cuda {

struct RunningSumArguments {
  const void* x = nullptr;  // lines.numel() elements
  void* out = nullptr;      // as many; may be `x`
  LineShape lines;
  bool exclusive = false;  // without the element itself
  bool reverse = false;    // from the end of the line
};

// out[i] = x[0] + ... + x[i] of each line. Of float32, float64, float16, bfloat16, int32 or int64;
// floats add up in float64, in an order that is always the same but not the host's, and integers
// wrap around. Enqueued on `stream`.
absl::Status RunningSum(DType dtype, const RunningSumArguments& arguments, cudaStream_t stream);

}  // namespace interp::cuda
