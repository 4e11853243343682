// Gradients of functions of one value.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// Named after the function; the meaning of `a` and `b` is that of the op's attributes on the host.
// The value is x but where it says y, the function's result.
enum class UnaryGradientOp : int8_t {
  kAbs,
  kAcos,
  kAcosh,
  kAsin,
  kAsinh,
  kAtan,
  kAtanh,
  kBRelu,  // between a and b; clip is the same
  kCelu,   // alpha a
  kCos,
  kCosh,
  kElu,  // alpha a
  kErf,
  kExp,    // y
  kExpm1,  // y
  kGelu,
  kGeluTanh,
  kHardShrink,   // threshold a; softshrink is the same
  kHardSigmoid,  // y; slope a
  kHardSwish,
  kLeakyRelu,  // alpha a
  kLog,
  kLog10,
  kLog1p,
  kLog2,
  kLogSigmoid,
  kLogit,       // eps a
  kMish,        // threshold a
  kPow,         // factor a
  kReciprocal,  // y
  kRelu,        // y
  kRelu6,       // y; threshold a
  kRsqrt,       // y
  kSTanh,       // scales a and b
  kSelu,        // y; alpha a, scale b
  kSigmoid,     // y
  kSin,
  kSinh,
  kSoftRelu,  // y; threshold a
  kSoftplus,  // beta a, threshold b
  kSoftsign,
  kSqrt,  // y
  kSquare,
  kSwish,  // beta a
  kTan,
  kTanh,  // y
  kTanhShrink,
  kThresholdedRelu,  // threshold a
  kZero,             // of a function of steps; no value is read
};

struct UnaryGradientArguments {
  UnaryGradientOp op = UnaryGradientOp::kZero;
  float a = 0;
  float b = 0;
  const void* a_data = nullptr;  // an element on the GPU that wins over `a`, if there is one
  const void* b_data = nullptr;
  const void* value = nullptr;  // x or y
  const void* out_grad = nullptr;
  void* x_grad = nullptr;  // may be `value` or `out_grad`
  int64_t size = 0;
};

// x_grad[i] = slope(value[i]) out_grad[i], of float32, float16 or bfloat16, computed in float32.
// Enqueued on `stream`.
absl::Status UnaryGradient(DType dtype, const UnaryGradientArguments& arguments,
                           cudaStream_t stream);

}  // namespace interp::cuda
