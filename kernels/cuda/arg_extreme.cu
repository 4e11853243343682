#include <type_traits>

#include "kernels/cuda/arg_extreme.h"
#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

// What shuffles take.
template <typename T>
using Compared =
    std::conditional_t<std::is_integral_v<T> && sizeof(T) < sizeof(int), int, ComputeType<T>>;

// Whether `a` wins over `b`, which came before it.
template <typename C>
__device__ bool Wins(C a, C b, bool largest) {
  return (largest ? a > b : a < b) || (b != b && a == a);
}

__device__ void StorePosition(const ArgExtremeArguments& args, int64_t line, int64_t position) {
  if (args.index_dtype == DType::kInt32) {
    static_cast<int32_t*>(args.out)[line] = static_cast<int32_t>(position);
  } else {
    static_cast<int64_t*>(args.out)[line] = position;
  }
}

// A line of neighbours for each row of threads: first its best value, then where it is first.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) SearchRows(const ArgExtremeArguments args) {
  using C = Compared<T>;
  const int64_t length = args.lines.length;
  const bool largest = args.largest;
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < args.lines.outer;
       row += int64_t{gridDim.x} * blockDim.y) {
    const T* const x = static_cast<const T*>(args.x) + row * length;
    int64_t at = threadIdx.x < length ? threadIdx.x : 0;
    C own = ToCompute(x[at]);
    for (int64_t i = int64_t{threadIdx.x} + blockDim.x; i < length; i += blockDim.x) {
      const C value = ToCompute(x[i]);
      if (!Wins(value, own, largest)) continue;
      own = value;
      at = i;
    }
    const C best = FoldRow(own, [largest](C a, C b) { return Wins(b, a, largest) ? b : a; });
    const int64_t first =
        FoldRow(own == best ? at : length, [](int64_t a, int64_t b) { return b < a ? b : a; });
    if (threadIdx.x == 0) StorePosition(args, row, first < length ? first : 0);
  }
}

// A line for each thread: neighbours have neighbouring lines.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) SearchColumns(const ArgExtremeArguments args) {
  using C = Compared<T>;
  for (int64_t line = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; line < args.lines.count();
       line += int64_t{gridDim.x} * blockDim.x) {
    const T* const x = static_cast<const T*>(args.x) + args.lines.Start(line);
    int64_t at = 0;
    C best = ToCompute(x[0]);
    for (int64_t i = 1; i < args.lines.length; ++i) {
      const C value = ToCompute(x[i * args.lines.inner]);
      if (!Wins(value, best, args.largest)) continue;
      best = value;
      at = i;
    }
    StorePosition(args, line, at);
  }
}

}  // namespace

absl::Status ArgExtreme(DType dtype, const ArgExtremeArguments& arguments, cudaStream_t stream) {
  const LineShape& lines = arguments.lines;
  if (lines.numel() == 0) return absl::OkStatus();
  return WithScalars("positions of extremes", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if (lines.inner == 1) {
      return Launch(SearchRows<T>, RowBlocks(lines.outer, lines.length), RowThreads(lines.length),
                    /*shared_bytes=*/0, stream, arguments);
    }
    return LaunchElements(SearchColumns<T>, lines.count(), stream, arguments);
  });
}

}  // namespace interp::cuda
