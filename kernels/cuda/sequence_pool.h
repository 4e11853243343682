// Pooling over sequences and its gradient, sums of the copies of sequences, softmax within
// sequences.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/sequence/sequence_pool_attrs.h"

namespace interp::cuda {

// Sequences side by side. Sums over the rows of a sequence are taken in their order.
struct PackedSequences {
  const int64_t* offsets = nullptr;  // of the device, count + 1
  int64_t count = 0;
  int64_t rows = 0;   // offsets[count]
  int64_t width = 1;  // elements of a row
};

// What kernels/sequence/sequence_pool.cc computes, of float32 or float64. `max_index` may be null.
struct SequencePooling {
  Pooling pooling = Pooling::kAverage;
  float pad_value = 0;
  const void* x = nullptr;
  void* out = nullptr;
  int32_t* max_index = nullptr;
};
absl::Status PoolSequences(DType dtype, const PackedSequences& sequences,
                           const SequencePooling& pooling, cudaStream_t stream);

// The gradient. A row that `max_index` names outside of its sequence gets nothing.
struct SequencePoolingGradient {
  Pooling pooling = Pooling::kAverage;
  const void* out_grad = nullptr;
  const int32_t* max_index = nullptr;  // of kMax
  void* x_grad = nullptr;
};
absl::Status PoolSequencesGradient(DType dtype, const PackedSequences& sequences,
                                   const SequencePoolingGradient& gradient, cudaStream_t stream);

// x_grad[row k of s] = the sum of out_grad over the copies of s, which begin at row out_starts[s];
// sequence s has repeats[s + 1] - repeats[s] of them. float32 or float64.
struct SequenceCopies {
  const int64_t* out_starts = nullptr;
  const int64_t* repeats = nullptr;
  const void* out_grad = nullptr;
  void* x_grad = nullptr;
};
absl::Status SumSequenceCopies(DType dtype, const PackedSequences& sequences,
                               const SequenceCopies& copies, cudaStream_t stream);

// Softmax of the elements of each sequence, and its gradient; rows have one element. `longest` is
// the most rows that a sequence has. float32 or float64.
absl::Status SoftmaxOfSequences(DType dtype, const PackedSequences& sequences, int64_t longest,
                                const void* x, void* out, cudaStream_t stream);
absl::Status SoftmaxOfSequencesGradient(DType dtype, const PackedSequences& sequences,
                                        int64_t longest, const void* out, const void* out_grad,
                                        void* x_grad, cudaStream_t stream);

}  // namespace interp::cuda
