#include <type_traits>

#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/running_sum.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

template <typename T>
using SumOf = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

// Sums of the threads of a row up to each: before it and in all.
template <typename Sum>
struct Prefix {
  Sum before;
  Sum with;
  Sum all;
};

// REQUIRES: as FoldRow.
template <typename Sum>
__device__ Prefix<Sum> AddUpRow(Sum value) {
  const int lane = static_cast<int>(threadIdx.x) % warpSize;
  Sum with = value;
  for (int distance = 1; distance < warpSize; distance *= 2) {
    const Sum lower = __shfl_up_sync(~0u, with, distance);
    if (lane >= distance) with = WrapAdd(lower, with);
  }
  const Sum lower = __shfl_up_sync(~0u, with, 1);
  const Sum before = lane == 0 ? Sum{0} : lower;
  const Sum of_warp = __shfl_sync(~0u, with, warpSize - 1);
  const int warps = static_cast<int>(blockDim.x) / warpSize;
  if (warps == 1) return {before, with, of_warp};
  INTERP_SHARED(Sum, totals, [32]);
  if (lane == 0) totals[threadIdx.x / warpSize] = of_warp;
  __syncthreads();
  Sum earlier{0};
  Sum all{0};
  for (int warp = 0; warp < warps; ++warp) {
    if (warp == static_cast<int>(threadIdx.x) / warpSize) earlier = all;
    all = WrapAdd(all, totals[warp]);
  }
  __syncthreads();  // the next call writes to `totals`
  return {WrapAdd(earlier, before), WrapAdd(earlier, with), all};
}

// A line of neighbours for each row of threads, one piece after the other.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) AddUpRows(const RunningSumArguments args) {
  using Sum = SumOf<T>;
  const int64_t length = args.lines.length;
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < args.lines.outer;
       row += int64_t{gridDim.x} * blockDim.y) {
    const T* const x = static_cast<const T*>(args.x) + row * length;
    T* const out = static_cast<T*>(args.out) + row * length;
    Sum carried{0};
    for (int64_t first = 0; first < length; first += blockDim.x) {
      const int64_t i = first + threadIdx.x;
      const int64_t at = args.reverse ? length - 1 - i : i;
      const Prefix<Sum> sums = AddUpRow(i < length ? static_cast<Sum>(ToCompute(x[at])) : Sum{0});
      const Sum sum = WrapAdd(carried, args.exclusive ? sums.before : sums.with);
      if (i < length) out[at] = FromCompute<T>(static_cast<ComputeType<T>>(sum));
      carried = WrapAdd(carried, sums.all);
    }
  }
}

// A line for each thread: neighbours have neighbouring lines.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) AddUpColumns(const RunningSumArguments args) {
  using Sum = SumOf<T>;
  for (int64_t line = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; line < args.lines.count();
       line += int64_t{gridDim.x} * blockDim.x) {
    const T* const x = static_cast<const T*>(args.x) + args.lines.Start(line);
    T* const out = static_cast<T*>(args.out) + args.lines.Start(line);
    Sum sum{0};
    for (int64_t i = 0; i < args.lines.length; ++i) {
      const int64_t at = (args.reverse ? args.lines.length - 1 - i : i) * args.lines.inner;
      const Sum with = WrapAdd(sum, static_cast<Sum>(ToCompute(x[at])));
      out[at] = FromCompute<T>(static_cast<ComputeType<T>>(args.exclusive ? sum : with));
      sum = with;
    }
  }
}

}  // namespace

absl::Status RunningSum(DType dtype, const RunningSumArguments& arguments, cudaStream_t stream) {
  const LineShape& lines = arguments.lines;
  if (lines.numel() == 0) return absl::OkStatus();
  return WithNumbers("running sums", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if (lines.inner == 1) {
      return Launch(AddUpRows<T>, RowBlocks(lines.outer, lines.length), RowThreads(lines.length),
                    /*shared_bytes=*/0, stream, arguments);
    }
    return LaunchElements(AddUpColumns<T>, lines.count(), stream, arguments);
  });
}

}  // namespace interp::cuda
