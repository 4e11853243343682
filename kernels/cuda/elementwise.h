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
  kAcos,
  kAcosh,
  kAsin,
  kAsinh,
  kAtan,
  kAtanh,
  kCeil,
  kCelu,  // alpha a
  kClip,  // to [a, b]
  kCos,
  kCosh,
  kElu,  // alpha a
  kErf,
  kExp,
  kExpm1,
  kFloor,
  kGelu,
  kGeluTanh,
  kHardShrink,   // threshold a
  kHardSigmoid,  // slope a, offset b
  kHardSwish,
  kLeakyRelu,  // alpha a
  kLog,
  kLog10,
  kLog1p,
  kLog2,
  kLogit,  // eps a
  kLogSigmoid,
  kMish,
  kPower,  // of exponent a
  kReciprocal,
  kRelu,
  kRound,  // half away from zero
  kRsqrt,
  kScale,  // a x + b; of integers with a and b truncated
  kSigmoid,
  kSign,
  kSin,
  kSinh,
  kSoftplus,    // beta a, threshold b
  kSoftShrink,  // lambda a
  kSoftsign,
  kSqrt,
  kSquare,
  kSwish,  // beta a
  kTan,
  kTanh,
  kTanhShrink,
  kThresholdedRelu,  // threshold a, b at and below it
  kTrunc,
  // Of two.
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kMin,
  kPow,
  kFloorDiv,
  kMod,   // with the sign of the divisor
  kFmax,  // the operand that is no NaN, if one is
  kFmin,
};
// Of integers only kAbs, kRelu, kScale, kSign, kSquare, kTrunc, kAdd, kSub, kMul, kMax, kMin, kFmax
// and kFmin.
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
