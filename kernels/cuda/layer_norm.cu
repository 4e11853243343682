#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/layer_norm.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

// Two passes over a row for its statistics: one would lose digits where the mean is large.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) NormRows(const LayerNormArguments args) {
  const int64_t length = args.length;
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < args.rows;
       row += int64_t{gridDim.x} * blockDim.y) {
    const T* const in = static_cast<const T*>(args.x) + row * length;
    T* const out = static_cast<T*>(args.y) + row * length;
    float sum = 0;
    for (int64_t i = threadIdx.x; i < length; i += blockDim.x) sum += ToCompute(in[i]);
    const float mean = SumRow(sum) / static_cast<float>(length);
    float squares = 0;
    for (int64_t i = threadIdx.x; i < length; i += blockDim.x) {
      const float difference = ToCompute(in[i]) - mean;
      squares += difference * difference;
    }
    const float variance = SumRow(squares) / static_cast<float>(length);
    const float factor = 1.0f / sqrtf(variance + args.epsilon);
    for (int64_t i = threadIdx.x; i < length; i += blockDim.x) {
      const float value = (ToCompute(in[i]) - mean) * factor;
      const float scaled = args.scale != nullptr ? value * args.scale[i] : value;
      out[i] = FromCompute<T>(args.bias != nullptr ? scaled + args.bias[i] : scaled);
    }
    if (threadIdx.x == 0 && args.means != nullptr) args.means[row] = mean;
    if (threadIdx.x == 0 && args.variances != nullptr) args.variances[row] = variance;
  }
}

}  // namespace

absl::Status LayerNorm(DType dtype, const LayerNormArguments& arguments, cudaStream_t stream) {
  if (arguments.rows == 0) return absl::OkStatus();
  return WithFloats("layer_norm", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return Launch(NormRows<T>, RowBlocks(arguments.rows, arguments.length),
                  RowThreads(arguments.length), /*shared_bytes=*/0, stream, arguments);
  });
}

}  // namespace interp::cuda
