#include <limits>

#include "kernels/cuda/fold.h"
#include "kernels/cuda/gather.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

// The threads of a row copy it, in pieces of T.
template <typename T, typename Index>
__global__ void __launch_bounds__(kBlockThreads) GatherRows(const GatherArguments args) {
  const int64_t pieces = args.row_bytes / static_cast<int64_t>(sizeof(T));
  const T* const x = static_cast<const T*>(args.x);
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < args.outer * args.count;
       row += int64_t{gridDim.x} * blockDim.y) {
    const int64_t position = row % args.count;
    const int64_t index = static_cast<const Index*>(args.indices)[position];
    const bool zero = args.zero_index >= 0 && index == args.zero_index;
    const bool valid = index >= 0 && index < args.rows;
    if (!zero && !valid && args.bad_position != nullptr && threadIdx.x == 0) {
      constexpr int64_t kMostPosition = std::numeric_limits<int>::max() - 1;
      atomicMax(args.bad_position,
                static_cast<int>((position < kMostPosition ? position : kMostPosition) + 1));
    }
    const T* const from = x + (row / args.count * args.rows + (valid ? index : 0)) * pieces;
    T* const to = static_cast<T*>(args.out) + row * pieces;
    for (int64_t i = threadIdx.x; i < pieces; i += blockDim.x) {
      to[i] = zero || !valid ? T{} : from[i];
    }
  }
}

template <typename T>
absl::Status GatherPieces(const GatherArguments& args, cudaStream_t stream) {
  const auto kernel =
      args.index_dtype == DType::kInt32 ? GatherRows<T, int32_t> : GatherRows<T, int64_t>;
  const int64_t pieces = args.row_bytes / static_cast<int64_t>(sizeof(T));
  return Launch(kernel, RowBlocks(args.outer * args.count, pieces), RowThreads(pieces),
                /*shared_bytes=*/0, stream, args);
}

}  // namespace

absl::Status Gather(const GatherArguments& arguments, cudaStream_t stream) {
  if (arguments.index_dtype != DType::kInt32 && arguments.index_dtype != DType::kInt64) {
    return Unimplemented("gather with indices of ", Name(arguments.index_dtype), " on a GPU");
  }
  if (arguments.outer * arguments.count * arguments.row_bytes == 0) return absl::OkStatus();
  const auto fits = [&arguments](int bytes) {
    return arguments.row_bytes % bytes == 0 && AlignedTo(arguments.x, bytes) &&
           AlignedTo(arguments.out, bytes);
  };
  if (fits(16)) return GatherPieces<uint4>(arguments, stream);
  if (fits(4)) return GatherPieces<uint32_t>(arguments, stream);
  if (fits(2)) return GatherPieces<uint16_t>(arguments, stream);
  return GatherPieces<uint8_t>(arguments, stream);
}

}  // namespace interp::cuda
