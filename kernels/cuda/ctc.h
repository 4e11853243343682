// warpctc: connectionist temporal classification, and its gradient.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/take_workspace.h"

namespace interp::cuda {

// The rows of sequences, joined with offsets, or [steps, batch, ...] with lengths. All lies on the
// GPU, so lengths are not looked at: they count as 0 to `steps`.
struct CtcRows {
  int64_t batch = 0;
  int64_t steps = 0;                 // the most rows of a sequence
  int64_t tags = 0;                  // of a row
  const int64_t* offsets = nullptr;  // null: padded
  const void* lengths = nullptr;
  DType length_dtype = DType::kInt64;
};

// Labels of int32 or int64, joined with offsets, or `width` for each sequence with lengths.
struct CtcLabels {
  const void* data = nullptr;
  DType dtype = DType::kInt32;
  int64_t width = 0;                 // the most labels of a sequence
  const int64_t* offsets = nullptr;  // null: padded
  const void* lengths = nullptr;
  DType length_dtype = DType::kInt64;
};

struct CtcArguments {
  CtcRows rows;
  CtcLabels labels;
  int64_t blank = 0;
  const void* logits = nullptr;
  void* loss = nullptr;  // one for each sequence; NaN, as the gradient, for a label that is no tag
  void* grad = nullptr;  // [steps, batch, tags], of the loss by the logits
};

// All of float32 or of float64. Enqueued on `stream`.
absl::Status Ctc(DType dtype, const CtcArguments& arguments, TakeWorkspace take_workspace,
                 cudaStream_t stream);

struct CtcGradientArguments {
  CtcRows rows;
  int64_t num_rows = 0;        // of logits_grad
  bool norm_by_times = false;  // divides by the rows of the sequence
  const void* grad = nullptr;  // as CtcArguments::grad
  const void* loss_grad = nullptr;
  void* logits_grad = nullptr;  // laid out as the rows are
};
absl::Status CtcGradient(DType dtype, const CtcGradientArguments& arguments, cudaStream_t stream);

}  // namespace interp::cuda
