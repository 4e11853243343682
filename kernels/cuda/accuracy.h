// accuracy.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// `indices` are [samples, k] and `labels` have an element a sample, of int32 or int64. A sample is
// correct where its label is among its indices; one with a negative label never is.
struct AccuracyArguments {
  const void* indices = nullptr;
  DType index_dtype = DType::kInt64;
  const void* labels = nullptr;
  DType label_dtype = DType::kInt64;
  int64_t samples = 0;
  int64_t k = 1;
  float* accuracy = nullptr;  // correct / total; 0 without samples
  int32_t* correct = nullptr;
  int32_t* total = nullptr;
};

// Enqueued on `stream`.
absl::Status Accuracy(const AccuracyArguments& arguments, cudaStream_t stream);

}  // namespace interp::cuda
