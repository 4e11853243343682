// Windows over the rows of sequences, and sums over them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/sequence_pool.h"

namespace interp::cuda {

// Each row t has the window of rows t + start ... t + start + length - 1. Rows in front of the
// sequence of t and behind it are those of a padding of `before` and then `behind` rows: the one
// `before` + d for row d < 0 relative to the begin, or d >= 0 relative to the end.
struct RowWindows {
  PackedSequences sequences = {};
  int64_t start = 0;
  int64_t length = 1;
  int64_t before = 0;
  int64_t behind = 0;
};

// All of float32 or float64, in memory of the device, and enqueued on `stream`. `windows` is
// [rows, length, width]; `x` and `x_grad` are [rows, width].

// `padding` [before + behind, width]; null: 0.
absl::Status UnfoldRows(DType dtype, const RowWindows& shape, const void* x, const void* padding,
                        void* windows, cudaStream_t stream);

// Each row of x_grad becomes the sum of its places in `windows`, in the order of the windows.
absl::Status SumRowWindows(DType dtype, const RowWindows& shape, const void* windows, void* x_grad,
                           cudaStream_t stream);

// The same for the rows of the padding.
absl::Status SumPaddingWindows(DType dtype, const RowWindows& shape, const void* windows,
                               void* padding_grad, cudaStream_t stream);

}  // namespace interp::cuda
