// A kernel that is right, and what it becomes when one line of it is changed.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/status.h"

namespace interp::cuda_test {

enum class Change : int8_t {
  kNone,
  kNoBarrier,         // before shared memory is read
  kBarrierInBranch,   // for even threads only
  kEarlyReturn,       // of threads beyond the row, before the barrier
  kSwappedIndex,      // row and column of the output
  kOneMore,           // element beyond the end of the row
  kNothingWritten,    // to the first element of shared memory
  kOneTooSmall,       // shared memory
  kMisalignedVector,  // the row is read as float4 from its second element on
  kPlainSum,          // the sum of all is added to without an atomic operation
  kHalfMask,          // a shuffle of all lanes names half of them
  kDivergentShuffle,  // a shuffle that only half of the lanes come to
  kHostPointer,       // the sum lies in memory of the host that is not pinned
  kNoWarpBarrier,     // between lanes that exchange through shared memory
};

inline constexpr int kColumns = 64;

// output[row][i] = input[row][kColumns - 1 - i], *sum += all of it. Four floats of slack follow
// each.
absl::Status ReverseRows(Change change, const float* input, float* output, float* sum, int rows,
                         cudaStream_t stream);
// Writes `value` to all of data.
absl::Status Fill(float* data, float value, int count, cudaStream_t stream);
// to[i] = from[i] + 1.
absl::Status AddOne(const float* from, float* to, int count, cudaStream_t stream);

}  // namespace interp::cuda_test
