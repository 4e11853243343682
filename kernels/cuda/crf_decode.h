// The most likely tags of sequences, by Viterbi's algorithm.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// All memory is the device's. Sequences are joined, with `offsets`, or padded to `steps` rows each,
// with `lengths`; those beyond `steps` count as `steps`, those below 0 as 0.
struct CrfDecoding {
  int64_t sequences = 0;
  int64_t rows = 0;  // of all of them, with the padding
  int64_t tags = 0;
  const int64_t* offsets = nullptr;  // [sequences + 1]; null: padded
  int64_t steps = 0;
  const void* lengths = nullptr;  // [sequences], of `length_dtype`: int32 or int64
  DType length_dtype = DType::kInt64;
  const void* emission = nullptr;  // [rows, tags]
  // [tags + 2, tags]: scores of starting in a tag, of ending in it, of going on from each tag.
  const void* transition = nullptr;
  const void* label = nullptr;  // [rows], of `label_dtype`: int32 or int64; may be null
  DType label_dtype = DType::kInt64;
  void* scores = nullptr;   // scratch, [sequences, 2, tags]
  int32_t* from = nullptr;  // scratch, [rows, tags]
  int64_t* path = nullptr;  // [rows]
};

// path = the tags of each row; with `label` 1 where that is the tag, else 0; 0 in the padding. Of
// sequences with the best score it is the host's: that of the lowest last tag, then the tag before
// it. Scores are of `dtype`, float32 or float64. Enqueued on `stream`.
absl::Status DecodeCrf(DType dtype, const CrfDecoding& decoding, cudaStream_t stream);

}  // namespace interp::cuda
