// Cross entropy of probabilities or logits, and its gradients. All floats are float32.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/line_shape.h"

namespace interp::cuda {

// Labels of the lines of a tensor: positions on the axis, or a weight for each element. A position
// that is neither on the axis nor `ignored` makes loss and gradient of its line NaN.
struct Labels {
  const void* data = nullptr;
  DType dtype = DType::kInt64;  // of weights not read
  bool soft = false;
  int64_t ignored = -100;
};

// A line is what lies along the middle dimension of `shape`; there are outer * inner of them.
struct CrossEntropyArguments {
  LineShape shape;
  const float* x = nullptr;
  Labels labels;
  bool of_logits = false;    // x are logits; otherwise probabilities
  float* softmax = nullptr;  // the probabilities, of x's size; may be x, and null
  float* loss = nullptr;     // one a line
  float* matched = nullptr;  // the probability at the label, one a line; may be null
};

// loss = -log of the probability at the label, 0 for ignored ones, or the sum of -weight log
// probability. Logits are taken no further than 64 below the greatest of their line, as on the
// host. Enqueued on `stream`.
absl::Status CrossEntropy(const CrossEntropyArguments& arguments, cudaStream_t stream);

enum class CrossEntropySlope : int8_t {
  kLogits,         // loss_grad (probability - label)
  kProbabilities,  // -loss_grad label / probability, 0 where the label is 0
  kQuotients,      // the same without that exception
};

struct CrossEntropyGradientArguments {
  LineShape shape;
  CrossEntropySlope slope = CrossEntropySlope::kLogits;
  const float* probability = nullptr;  // null: those at the labels are `matched`
  const float* matched = nullptr;
  Labels labels;
  const float* loss_grad = nullptr;  // one a line
  float* x_grad = nullptr;           // may be `probability`
};
absl::Status CrossEntropyGradient(const CrossEntropyGradientArguments& arguments,
                                  cudaStream_t stream);

// Of `size` elements. out = max(x, 0) - x label + weight log(1 + e^-|x|), or of the gradient
// (weight sigmoid(x) - label) out_grad; 0 where the whole part of the label is `ignored`.
struct SigmoidCrossEntropyArguments {
  const float* x = nullptr;
  const float* label = nullptr;
  const float* weight = nullptr;    // null: 1
  const float* out_grad = nullptr;  // null: the loss itself
  float* out = nullptr;             // may be `x` or `out_grad`
  int64_t size = 0;
  int32_t ignored = -100;
  // Scratch memory, to divide by the number of labels that count; null: 1.
  unsigned long long* count = nullptr;
};
absl::Status SigmoidCrossEntropy(const SigmoidCrossEntropyArguments& arguments,
                                 cudaStream_t stream);

}  // namespace interp::cuda
