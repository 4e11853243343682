#include <algorithm>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/numbers.h"

namespace interp::cuda {
namespace {

struct NumberPiece {
  int64_t count;
  int64_t values[kNumbersPerLaunch];
};

__global__ void __launch_bounds__(kBlockThreads) StorePiece(const NumberPiece piece, int64_t* to) {
  for (int64_t i = threadIdx.x; i < piece.count; i += blockDim.x) to[i] = piece.values[i];
}

}  // namespace

absl::Status StoreByValue(absl::Span<const int64_t> numbers, int64_t* to, cudaStream_t stream) {
  const auto size = static_cast<int64_t>(numbers.size());
  for (int64_t first = 0; first < size; first += kNumbersPerLaunch) {
    NumberPiece piece;
    piece.count = std::min(kNumbersPerLaunch, size - first);
    std::copy_n(numbers.data() + first, piece.count, piece.values);
    INTERP_RETURN_IF_ERROR(
        Launch(StorePiece, 1, kBlockThreads, /*shared_bytes=*/0, stream, piece, to + first));
  }
  return absl::OkStatus();
}

}  // namespace interp::cuda
