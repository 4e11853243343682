// Losses of two tensors of one shape, with their gradients.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// All arrays have `size` elements of one dtype, float32 or float64, but those that say otherwise.
// What is computed is enqueued on `stream`.

struct LogLossArguments {
  const void* x = nullptr;
  const void* label = nullptr;
  const void* grad = nullptr;  // of the loss; null: `out` is the loss, else the gradient of x
  void* out = nullptr;         // may be x or grad
  int64_t size = 0;
  float epsilon = 0;
};
// loss = -label log(x + epsilon) - (1 - label) log(1 - x + epsilon).
absl::Status LogLoss(DType dtype, const LogLossArguments& arguments, cudaStream_t stream);

struct HuberLossArguments {
  const void* x = nullptr;
  const void* y = nullptr;
  void* out = nullptr;
  void* residual = nullptr;  // y - x; may be null
  int64_t size = 0;
  float delta = 0;
};
// out = residual^2 / 2 up to `delta`, delta (|residual| - delta / 2) beyond.
absl::Status HuberLoss(DType dtype, const HuberLossArguments& arguments, cudaStream_t stream);

struct HuberLossGradArguments {
  const void* residual = nullptr;
  const void* grad = nullptr;
  void* x_grad = nullptr;  // either may be null
  void* y_grad = nullptr;
  int64_t size = 0;
  float delta = 0;
};
absl::Status HuberLossGrad(DType dtype, const HuberLossGradArguments& arguments,
                           cudaStream_t stream);

struct SmoothL1Arguments {
  const void* x = nullptr;
  const void* y = nullptr;
  const void* inside = nullptr;   // weights of the differences; null with `outside`: 1
  const void* outside = nullptr;  // weights of the losses
  void* diff = nullptr;           // inside (x - y)
  void* out = nullptr;            // `rows` elements: sums of rows, added up in float64
  int64_t rows = 0;
  int64_t width = 0;
  float sigma = 1;
};
// The loss of d = diff is (sigma d)^2 / 2 for |d| < 1 / sigma^2, else |d| - 1 / (2 sigma^2).
absl::Status SmoothL1Loss(DType dtype, const SmoothL1Arguments& arguments, cudaStream_t stream);

struct SmoothL1GradArguments {
  const void* diff = nullptr;
  const void* inside = nullptr;  // as above
  const void* outside = nullptr;
  const void* grad = nullptr;  // `rows` elements
  void* x_grad = nullptr;      // either may be null
  void* y_grad = nullptr;
  int64_t rows = 0;
  int64_t width = 0;
  float sigma = 1;
};
absl::Status SmoothL1LossGrad(DType dtype, const SmoothL1GradArguments& arguments,
                              cudaStream_t stream);

}  // namespace interp::cuda
