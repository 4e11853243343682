// Reductions over some of a tensor's dimensions.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/types/span.h"
#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/take_workspace.h"

namespace interp::cuda {

// Maxima and minima keep NaN.
enum class ReduceOp : int8_t { kSum, kMean, kMax, kMin, kProd };

// out = `x` of shape `dims` without the dimensions whose bits are in `reduced`. Of float32,
// float64, float16, bfloat16, int32 or int64; integers fold in int64, floats in float64 as on the
// host. Long folds with few results take temporary memory. Results do not depend on the order in
// which threads run. Enqueued on `stream`.
absl::Status Reduce(DType dtype, ReduceOp op, const void* x, absl::Span<const int64_t> dims,
                    uint32_t reduced, void* out, TakeWorkspace take_workspace, cudaStream_t stream);

// The norm of an order: (sum |x|^order)^(1/order), the number of elements that are not 0 for order
// 0, the largest and the smallest |x| for infinities; `squared`: the sum of squares instead.
struct ReduceNorm {
  float order = 2;
  bool squared = false;
};

// The same for norms, of float32 or float64, added up in float64.
absl::Status Reduce(DType dtype, const ReduceNorm& norm, const void* x,
                    absl::Span<const int64_t> dims, uint32_t reduced, void* out,
                    TakeWorkspace take_workspace, cudaStream_t stream);

}  // namespace interp::cuda
