#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/layer_norm_grad.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

constexpr int kTileColumns = 32;
constexpr int kTileRows = 16;

__device__ float FactorOf(const LayerNormGradientArguments& args, int64_t row) {
  return 1.0f / sqrtf(args.variances[row] + args.epsilon);
}

// x_grad, a row for each row of threads.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    GradientRows(const LayerNormGradientArguments args) {
  const int64_t length = args.length;
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < args.rows;
       row += int64_t{gridDim.x} * blockDim.y) {
    const T* const x = static_cast<const T*>(args.x) + row * length;
    const T* const grad = static_cast<const T*>(args.y_grad) + row * length;
    T* const out = static_cast<T*>(args.x_grad) + row * length;
    const float mean = args.means[row];
    const float factor = FactorOf(args, row);
    const auto scaled = [&args, grad](int64_t i) {
      return args.scale != nullptr ? ToCompute(grad[i]) * args.scale[i] : ToCompute(grad[i]);
    };
    float sum = 0;
    float products = 0;
    for (int64_t i = threadIdx.x; i < length; i += blockDim.x) {
      const float g = scaled(i);
      sum += g;
      products += g * ((ToCompute(x[i]) - mean) * factor);
    }
    const float shift = SumRow(sum) / static_cast<float>(length);
    const float slope = SumRow(products) / static_cast<float>(length);
    for (int64_t i = threadIdx.x; i < length; i += blockDim.x) {
      const float normal = (ToCompute(x[i]) - mean) * factor;
      out[i] = FromCompute<T>((scaled(i) - shift - normal * slope) * factor);
    }
  }
}

// scale_grad and bias_grad; a column is summed by kTileRows threads, in double as on the host.
template <typename T>
__global__ void __launch_bounds__(kTileColumns* kTileRows)
    GradientColumns(const LayerNormGradientArguments args) {
  INTERP_SHARED(double, scale_sums, [kTileRows][kTileColumns]);
  INTERP_SHARED(double, bias_sums, [kTileRows][kTileColumns]);
  const int64_t tiles = (args.length + kTileColumns - 1) / kTileColumns;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t column = tile * kTileColumns + threadIdx.x;
    double of_scale = 0;
    double of_bias = 0;
    for (int64_t row = threadIdx.y; row < args.rows && column < args.length; row += kTileRows) {
      const int64_t at = row * args.length + column;
      const float grad = ToCompute(static_cast<const T*>(args.y_grad)[at]);
      const float x = ToCompute(static_cast<const T*>(args.x)[at]);
      of_bias += grad;
      of_scale += grad * ((x - args.means[row]) * FactorOf(args, row));
    }
    scale_sums[threadIdx.y][threadIdx.x] = of_scale;
    bias_sums[threadIdx.y][threadIdx.x] = of_bias;
    __syncthreads();
    if (threadIdx.y == 0 && column < args.length) {
      for (int row = 1; row < kTileRows; ++row) {
        of_scale += scale_sums[row][threadIdx.x];
        of_bias += bias_sums[row][threadIdx.x];
      }
      if (args.scale_grad != nullptr) args.scale_grad[column] = static_cast<float>(of_scale);
      if (args.bias_grad != nullptr) args.bias_grad[column] = static_cast<float>(of_bias);
    }
    __syncthreads();  // the next tile writes to the sums
  }
}

}  // namespace

absl::Status LayerNormGradient(DType dtype, const LayerNormGradientArguments& args,
                               cudaStream_t stream) {
  if (args.length == 0) return absl::OkStatus();
  return WithFloats("layer_norm_grad", dtype, [&](auto type) -> absl::Status {
    using T = typename decltype(type)::type;
    if (args.scale_grad != nullptr || args.bias_grad != nullptr) {
      INTERP_RETURN_IF_ERROR(Launch(GradientColumns<T>, BlocksFor(args.length, kTileColumns),
                                    dim3(kTileColumns, kTileRows), /*shared_bytes=*/0, stream,
                                    args));
    }
    if (args.x_grad == nullptr || args.rows == 0) return absl::OkStatus();
    return Launch(GradientRows<T>, RowBlocks(args.rows, args.length), RowThreads(args.length),
                  /*shared_bytes=*/0, stream, args);
  });
}

}  // namespace interp::cuda
