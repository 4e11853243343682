// Rows of a tensor that a list of numbers picks: gather and embedding lookups.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// `x` has `outer` blocks of `rows` rows of `row_bytes` bytes, `out` as many blocks of `count` rows.
struct GatherArguments {
  const void* x = nullptr;
  const void* indices = nullptr;  // `count`, of `index_dtype`: int32 or int64
  DType index_dtype = DType::kInt64;
  void* out = nullptr;
  int64_t outer = 1;
  int64_t rows = 0;
  int64_t row_bytes = 0;
  int64_t count = 0;
  int64_t zero_index = -1;  // picks a row of zeros where it is not negative
  // On the device; what an index picks that is out of range is a row of zeros, and one such
  // position plus 1 is stored here. The caller sets it to 0 before. Null: nobody asks.
  int* bad_position = nullptr;
};

// out[o][i] = x[o][indices[i]]. Enqueued on `stream`.
absl::Status Gather(const GatherArguments& arguments, cudaStream_t stream);

}  // namespace interp::cuda
