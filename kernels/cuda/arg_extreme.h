// Positions of the greatest or the least elements of lines.
#pragma once

#include <cuda_runtime.h>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/line_shape.h"

namespace interp::cuda {

struct ArgExtremeArguments {
  const void* x = nullptr;  // lines.numel() elements
  LineShape lines;          // REQUIRES: lines.length > 0
  bool largest = true;      // else the least
  DType index_dtype = DType::kInt64;
  void* out = nullptr;  // lines.count() positions of `index_dtype`: int32 or int64
};

// out[line] = where the first greatest or least element of the line is. NaN is chosen only where
// there is nothing else: then the position is 0. Of any scalar dtype but complex numbers. Enqueued
// on `stream`.
absl::Status ArgExtreme(DType dtype, const ArgExtremeArguments& arguments, cudaStream_t stream);

}  // namespace interp::cuda
