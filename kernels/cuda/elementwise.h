// Element-wise chains with broadcasting, in one launch: out = f3(f2(f1(x), y), z), say.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// The meaning of `a` and `b` is that of the ops' attributes on the host.
enum class ElementwiseOp : int8_t {
  // Of one value.
  kAbs,
  kCeil,
  kClip,  // to [a, b]
  kCos,
  kElu,  // alpha a
  kErf,
  kExp,
  kFloor,
  kGelu,
  kGeluTanh,
  kHardSigmoid,  // slope a, offset b
  kHardSwish,
  kLeakyRelu,  // alpha a
  kLog,
  kMish,
  kReciprocal,
  kRelu,
  kRsqrt,
  kScale,  // a x + b
  kSigmoid,
  kSign,
  kSin,
  kSoftplus,  // beta a, threshold b
  kSqrt,
  kSquare,
  kSwish,  // beta a
  kTanh,
  // Of two.
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kMin,
  kPow,
};
// Of integers only kAbs, kRelu, kSign, kSquare, kAdd, kSub, kMul, kMax and kMin.
bool TakesIntegers(ElementwiseOp op);
bool TakesTwo(ElementwiseOp op);

// One function of the chain: of the value so far and, where it takes two, of an operand.
struct ElementwiseStep {
  ElementwiseOp op = ElementwiseOp::kRelu;
  float a = 0;
  float b = 0;
  int operand = -1;      // of ops of two
  bool swapped = false;  // the operand comes first
};

// A dense tensor with the rank of the output; dimensions of length 1 are repeated.
struct ElementwiseOperand {
  const void* data = nullptr;
  absl::Span<const int64_t> dims;
};

inline constexpr int kMaxOperands = 4;
inline constexpr int kMaxSteps = 8;

// out[i] = the steps applied to operands[0][i]. All are of `dtype`: float32, float64, float16,
// bfloat16, int32 or int64; 16-bit floats are rounded once, at the end. `out` may be an operand
// that is not repeated. Enqueued on `stream`.
absl::Status Elementwise(DType dtype, absl::Span<const ElementwiseStep> steps,
                         absl::Span<const ElementwiseOperand> operands,
                         absl::Span<const int64_t> out_dims, void* out, cudaStream_t stream);

}  // namespace interp::cuda
