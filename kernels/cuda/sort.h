// Lines in order, whole or their first elements, and what their gradients scatter.
#pragma once

#include <cuda_runtime.h>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/line_shape.h"
#include "kernels/cuda/take_workspace.h"

namespace interp::cuda {

struct SortArguments {
  const void* x = nullptr;  // lines.numel() elements
  LineShape lines;
  int64_t keep = 0;            // how many of each line are written: 0 to lines.length
  bool descending = false;     // NaN comes last in ascending order, first in descending
  void* values = nullptr;      // [lines.outer, keep, lines.inner]
  int64_t* indices = nullptr;  // where in its line each of `values` was
};

// The first `keep` elements of each sorted line; equal elements keep their order. NaN is an element
// like others, also where the host's top_k compares by > alone. Of float32,
// float64, float16, bfloat16, int32 or int64. Takes temporary memory for two copies of what is kept
// of each 1024 elements, with their indices. Enqueued on `stream`.
absl::Status Sort(DType dtype, const SortArguments& arguments, TakeWorkspace take_workspace,
                  cudaStream_t stream);

struct ScatterToLinesArguments {
  const void* updates = nullptr;  // kept.numel() elements
  int element_bytes = 4;          // or 8
  const void* indices = nullptr;  // kept.numel() of `index_dtype`: int32 or int64
  DType index_dtype = DType::kInt64;
  LineShape kept;
  int64_t length = 0;   // of the lines of `out`
  void* out = nullptr;  // [kept.outer, length, kept.inner]
};

// Each update goes to the place in its line that its index says, the rest of `out` is 0. What is
// out of range goes nowhere; of updates of one place, which no sorting op makes, one stays.
// Enqueued on `stream`.
absl::Status ScatterToLines(const ScatterToLinesArguments& arguments, cudaStream_t stream);

}  // namespace interp::cuda
