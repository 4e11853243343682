#include "kernels/cuda/accuracy.h"
#include "kernels/cuda/fold.h"
#include "kernels/cuda/integers.h"
#include "kernels/cuda/launch.h"

namespace interp::cuda {
namespace {

// One block.
__global__ void __launch_bounds__(kBlockThreads) CountCorrect(const AccuracyArguments args) {
  int correct = 0;
  for (int64_t i = threadIdx.x; i < args.samples; i += blockDim.x) {
    const int64_t label = IntegerAt(args.labels, args.label_dtype, i);
    bool found = false;
    for (int64_t j = 0; j < args.k; ++j) {
      found |= IntegerAt(args.indices, args.index_dtype, i * args.k + j) == label;
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
    INTERP_RETURN_IF_ERROR(CheckIntegers("accuracy", dtype));
  }
  return Launch(CountCorrect, 1, kBlockThreads, /*shared_bytes=*/0, stream, args);
}

}  // namespace interp::cuda
