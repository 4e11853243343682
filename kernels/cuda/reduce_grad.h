// Gradients of reductions over some of a tensor's dimensions.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/types/span.h"
#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

enum class ReduceGradientOp : int8_t {
  kSpread,          // grad / divisor
  kExtremes,        // grad where x is the extreme, of each of several
  kSharedExtremes,  // an equal part of it
  kProducts,        // grad times the product of the other elements
  kSquares,         // 2 x grad
};

// Of x, whose dimensions are `dims`; `out` and `out_grad` have those that are not in `reduced`.
struct ReduceGradientArguments {
  ReduceGradientOp op = ReduceGradientOp::kSpread;
  float divisor = 1;
  absl::Span<const int64_t> dims;
  uint32_t reduced = 0;       // bit d: dimension d is reduced
  const void* x = nullptr;    // not of kSpread
  const void* out = nullptr;  // of extremes
  const void* out_grad = nullptr;
  void* x_grad = nullptr;      // may be x
  float* workspace = nullptr;  // as many as ReduceGradientWorkspace says
};

// Floats of scratch memory for a reduction that gives `outputs` elements.
int64_t ReduceGradientWorkspace(ReduceGradientOp op, int64_t outputs);

// x_grad[i] from x[i] and the out and out_grad that it went into; float32, float16 or bfloat16.
// Enqueued on `stream`.
absl::Status ReduceGradient(DType dtype, const ReduceGradientArguments& arguments,
                            cudaStream_t stream);

}  // namespace interp::cuda
