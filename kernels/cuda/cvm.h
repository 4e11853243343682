// cvm: rows that start with a show and a click count, and its gradient.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// `x` is [rows, width], `y` too or, without the counts, two columns less. Of float32 or float64.
struct CvmArguments {
  bool keeps_counts = true;
  int64_t rows = 0;
  int64_t width = 0;
  const void* x = nullptr;
  void* y = nullptr;
};

// Enqueued on `stream`.
absl::Status Cvm(DType dtype, const CvmArguments& arguments, cudaStream_t stream);

// The gradient begins with `counts`, which have two numbers for each row or each sequence.
struct CvmGradientArguments {
  bool keeps_counts = true;
  int64_t rows = 0;
  int64_t width = 0;                 // of x_grad
  const int64_t* offsets = nullptr;  // of the sequences, on the GPU; null: rows are none
  int64_t sequences = 0;
  const void* y_grad = nullptr;
  const void* counts = nullptr;
  void* x_grad = nullptr;
};
absl::Status CvmGradient(DType dtype, const CvmGradientArguments& arguments, cudaStream_t stream);

}  // namespace interp::cuda
