#include "kernels/cuda/launch.h"
#include "kernels/cuda/sequences.h"
#include "kernels/cuda/step_rows.h"

namespace interp::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    CollectBatchRowsBefore(const StepRows rows, int64_t count, int64_t width, const T* states,
                           const T* first, T* before) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count * width;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t t = SequenceOfRow(rows.starts, rows.steps, i / width);
    const int64_t p = i / width - rows.starts[t];
    const int64_t j = i % width;
    if (t > 0) {
      before[i] = states[(rows.first[p] + (t - 1) * rows.stride) * width + j];
    } else {
      before[i] = first == nullptr ? T{0} : first[p * width + j];
    }
  }
}

}  // namespace

absl::Status StatesBeforeBatchRows(DType dtype, const StepRows& rows, int64_t count, int64_t width,
                                   const void* states, const void* first, void* before,
                                   cudaStream_t stream) {
  if (count * width == 0) return absl::OkStatus();
  return WithWideFloats("states of sequences", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchElements(CollectBatchRowsBefore<T>, count * width, stream, rows, count, width,
                          static_cast<const T*>(states), static_cast<const T*>(first),
                          static_cast<T*>(before));
  });
}

}  // namespace interp::cuda
