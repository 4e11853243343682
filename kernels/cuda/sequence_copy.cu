#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sequence_copy.h"
#include "kernels/cuda/sequences.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

__device__ int64_t OtherRow(const SequenceCopy& copy, int64_t sequence, int64_t k) {
  const int64_t start = copy.starts[sequence];
  if (copy.order == SequenceOrder::kBackward) return start - k;
  if (copy.order == SequenceOrder::kForward) return start + k;
  return start + k % (copy.starts[sequence + 1] - start);
}

// The threads of a row copy it, in pieces of T.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) CopySequenceRows(const SequenceCopy copy) {
  const int64_t pieces = copy.row_bytes / static_cast<int64_t>(sizeof(T));
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < copy.rows;
       row += int64_t{gridDim.x} * blockDim.y) {
    const int64_t sequence = SequenceOfRow(copy.offsets, copy.count, row);
    const int64_t other = OtherRow(copy, sequence, row - copy.offsets[sequence]);
    const T* const from =
        static_cast<const T*>(copy.from) + (copy.to_packed ? other : row) * pieces;
    T* const to = static_cast<T*>(copy.to) + (copy.to_packed ? row : other) * pieces;
    for (int64_t i = threadIdx.x; i < pieces; i += blockDim.x) to[i] = from[i];
  }
}

template <typename T>
absl::Status CopyPieces(const SequenceCopy& copy, cudaStream_t stream) {
  const int64_t pieces = copy.row_bytes / static_cast<int64_t>(sizeof(T));
  return Launch(CopySequenceRows<T>, RowBlocks(copy.rows, pieces), RowThreads(pieces),
                /*shared_bytes=*/0, stream, copy);
}

}  // namespace

absl::Status CopySequences(const SequenceCopy& copy, cudaStream_t stream) {
  if (copy.rows * copy.row_bytes == 0) return absl::OkStatus();
  const auto fits = [&copy](int bytes) {
    return copy.row_bytes % bytes == 0 && AlignedTo(copy.from, bytes) && AlignedTo(copy.to, bytes);
  };
  if (fits(16)) return CopyPieces<uint4>(copy, stream);
  if (fits(4)) return CopyPieces<uint32_t>(copy, stream);
  if (fits(2)) return CopyPieces<uint16_t>(copy, stream);
  return CopyPieces<uint8_t>(copy, stream);
}

}  // namespace interp::cuda
