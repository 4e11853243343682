// Gradients of element-wise functions of two tensors with broadcasting.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/types/span.h"
#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/take_workspace.h"

namespace interp::cuda {

// The function of x and y. Of equal values max and min give the gradient to y, fmax and fmin to x.
enum class BinaryGradientOp : int8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kMin,
  kFMax,
  kFMin,
  kPow,
};
// Whether the derivative by x, or by y, is computed from x and from y.
bool TakesSelf(BinaryGradientOp op, bool by_y);
bool TakesOther(BinaryGradientOp op);

// The gradient of one operand, `self`, beside the other. All dims have the rank of the result;
// dimensions of length 1 are repeated.
struct BinaryGradientArguments {
  BinaryGradientOp op = BinaryGradientOp::kAdd;
  bool by_y = false;           // self is y
  const void* self = nullptr;  // read where TakesSelf
  absl::Span<const int64_t> self_dims;
  const void* other = nullptr;  // read where TakesOther
  absl::Span<const int64_t> other_dims;
  const void* out_grad = nullptr;
  absl::Span<const int64_t> out_dims;
  void* self_grad = nullptr;  // may be `out_grad` or `self` where self is not repeated
};

// self_grad = the partial derivative times out_grad, summed over the dimensions that self repeats;
// float32, float16 or bfloat16, summed in float64 as on the host. Long sums with few results take
// temporary memory. The bits do not depend on the order in which threads run. Enqueued on `stream`.
absl::Status BinaryGradient(DType dtype, const BinaryGradientArguments& arguments,
                            TakeWorkspace take_workspace, cudaStream_t stream);

}  // namespace interp::cuda
