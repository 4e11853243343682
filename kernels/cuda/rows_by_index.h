// Rows of a tensor that a list of numbers names: what scatters write to them and what the gradients
// of gathers add up in them. Sums have the order of the list whatever the threads do: each row is
// looked for in the whole of a short list, and in a sorted copy of a long one.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/types/span.h"
#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/take_workspace.h"

namespace interp::cuda {

enum class RowUpdate : int8_t {
  kSum,      // the sum of its updates, from 0 on
  kAdd,      // its old value and its updates
  kReplace,  // the sum of its updates; its old value where it has none
  kLast,     // its last update, or its old value
};

// Tensors have `outer` blocks: `old` and `out` of `rows` rows, `updates` of `count`; all rows have
// `columns` elements.
struct RowsByIndex {
  const void* old = nullptr;      // not read for kSum; may be `out`
  const void* updates = nullptr;  // null: zeros
  const void* indices = nullptr;  // `count`, of `index_dtype`: int32 or int64; others name no row
  DType index_dtype = DType::kInt64;
  void* out = nullptr;
  int64_t outer = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t count = 0;
  int64_t skipped_index = -1;  // names no row, either
};

// Of float32, float64, float16, bfloat16, int32 or int64; 16-bit floats add up in float32. Takes
// temporary memory for a sorted copy. Enqueued on `stream`.
absl::Status UpdateRows(DType dtype, RowUpdate update, const RowsByIndex& arguments,
                        TakeWorkspace take_workspace, cudaStream_t stream);

// rows[i] = the number of the slice that tuple i of `depth` = lengths.size() coordinates names in a
// tensor whose first dimensions are `lengths`; -1 where one is out of range. Enqueued on `stream`.
absl::Status RowsOfTuples(DType index_dtype, const void* tuples, int64_t count,
                          absl::Span<const int64_t> lengths, int64_t* rows, cudaStream_t stream);

}  // namespace interp::cuda
