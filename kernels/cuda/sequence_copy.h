// Rows of sequences moved between a tensor that has them side by side and one that has each
// somewhere.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/status.h"

namespace interp::cuda {

// Where row k of sequence s lies in the other tensor.
enum class SequenceOrder : int8_t {
  kForward,   // starts[s] + k
  kBackward,  // starts[s] - k
  kRepeat,    // starts[s] + k % (starts[s + 1] - starts[s])
};

// The packed tensor has sequence s in its rows [offsets[s], offsets[s + 1]). All pointers are
// memory of the device.
struct SequenceCopy {
  const void* from = nullptr;
  void* to = nullptr;
  bool to_packed = true;  // whether `to` is the packed tensor, else `from` is
  SequenceOrder order = SequenceOrder::kForward;
  const int64_t* offsets = nullptr;  // count + 1
  const int64_t* starts = nullptr;   // count, of kRepeat count + 1
  int64_t count = 0;                 // sequences
  int64_t rows = 0;                  // of the packed tensor: offsets[count]
  int64_t row_bytes = 0;
};

// Enqueued on `stream`. Rows of the other tensor that no sequence has stay as they are.
absl::Status CopySequences(const SequenceCopy& copy, cudaStream_t stream);

}  // namespace interp::cuda
