// Comparisons, logic and tests of floats, whose result is bool.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/elementwise.h"

namespace interp::cuda {

enum class PredicateOp : int8_t {
  // Of one value.
  kNot,
  kIsFinite,
  kIsInf,
  kIsNan,
  // Of two.
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,
  kOr,
  kXor,
};

// out[i] = op(operands[0][i]), or of both operands. They are of `dtype`: bool, uint8, int8, int16,
// int32, int64 or floats, and may be repeated. Enqueued on `stream`.
absl::Status Predicate(DType dtype, PredicateOp op, absl::Span<const ElementwiseOperand> operands,
                       absl::Span<const int64_t> out_dims, bool* out, cudaStream_t stream);

}  // namespace interp::cuda
