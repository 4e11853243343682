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
//
// Windows of the rows [first, first + count) are in memory at a time, as [count, length, width].
struct RowWindows {
  PackedSequences sequences = {};
  int64_t start = 0;
  int64_t length = 1;
  int64_t before = 0;
  int64_t behind = 0;
  int64_t first = 0;
  int64_t count = 0;
};

// All of float32 or float64, in memory of the device, and enqueued on `stream`. `x` and `x_grad`
// are [rows, width].

// `padding` [before + behind, width]; null: 0.
absl::Status UnfoldRows(DType dtype, const RowWindows& shape, const void* x, const void* padding,
                        void* windows, cudaStream_t stream);

// Adds its places in `windows` to each row of x_grad, in the order of the windows: the sums are the
// same in however many pieces they are taken.
absl::Status AddRowWindows(DType dtype, const RowWindows& shape, const void* windows, void* x_grad,
                           cudaStream_t stream);

// The same for the rows of the padding.
absl::Status AddPaddingWindows(DType dtype, const RowWindows& shape, const void* windows,
                               void* padding_grad, cudaStream_t stream);

}  // namespace interp::cuda
