// data_norm: rows by sums over batches before, and what a batch gives to those.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// Rows of `width` columns, in slots of `slot_dim`; not positive: no slots. A slot whose first
// element is 0 shows nothing.
struct DataNormShape {
  int64_t rows = 0;
  int64_t width = 0;
  int64_t slot_dim = -1;
};

// All of float32 or of float64. Vectors have an element a column.
struct DataNormArguments {
  DataNormShape shape;
  const void* x = nullptr;
  const void* size = nullptr;
  const void* sum = nullptr;
  const void* square_sum = nullptr;
  const void* weight = nullptr;  // null: y is not scaled and shifted
  const void* bias = nullptr;
  void* y = nullptr;
  void* means = nullptr;
  void* scales = nullptr;
};

// Enqueued on `stream`.
absl::Status DataNorm(DType dtype, const DataNormArguments& arguments, cudaStream_t stream);

// What is null is not wanted, but for `weight`, which may not be there.
struct DataNormGradientArguments {
  DataNormShape shape;
  float epsilon = 0;
  const void* x = nullptr;
  const void* means = nullptr;
  const void* scales = nullptr;
  const void* weight = nullptr;
  const void* y_grad = nullptr;
  void* x_grad = nullptr;
  void* size = nullptr;  // statistics of the rows, of slots their means
  void* sum = nullptr;
  void* square_sum = nullptr;
  void* weight_grad = nullptr;
  void* bias_grad = nullptr;
};
absl::Status DataNormGradient(DType dtype, const DataNormGradientArguments& arguments,
                              cudaStream_t stream);

}  // namespace interp::cuda
