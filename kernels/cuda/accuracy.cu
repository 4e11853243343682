#include "kernels/cuda/accuracy.h"
#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"

namespace interp::cuda {
namespace {

__device__ int64_t IndexAt(const void* data, DType dtype, int64_t i) {
  return dtype == DType::kInt32 ? static_cast<const int32_t*>(data)[i]
                                : static_cast<const int64_t*>(data)[i];
}

// One block.
__global__ void __launch_bounds__(kBlockThreads) CountCorrect(const AccuracyArguments args) {
  int correct = 0;
  for (int64_t i = threadIdx.x; i < args.samples; i += blockDim.x) {
    const int64_t label = IndexAt(args.labels, args.label_dtype, i);
    bool found = false;
    for (int64_t j = 0; j < args.k; ++j) {
      found |= IndexAt(args.indices, args.index_dtype, i * args.k + j) == label;
    }
    correct += found && label >= 0 ? 1 : 0;
  }
  correct = SumRow(correct);
  if (threadIdx.x != 0) return;
  *args.correct = correct;
  *args.total = static_cast<int32_t>(args.samples);
  *args.accuracy =
      args.samples == 0 ? 0.0f : static_cast<float>(correct) / static_cast<float>(args.samples);
}

}  // namespace

absl::Status Accuracy(const AccuracyArguments& args, cudaStream_t stream) {
  for (const DType dtype : {args.index_dtype, args.label_dtype}) {
    if (dtype == DType::kInt32 || dtype == DType::kInt64) continue;
    return InvalidArgument("accuracy of ", Name(dtype), ", expected int32 or int64");
  }
  return Launch(CountCorrect, 1, kBlockThreads, /*shared_bytes=*/0, stream, args);
}

}  // namespace interp::cuda
