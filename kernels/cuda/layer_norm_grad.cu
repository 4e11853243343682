#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/layer_norm_grad.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

constexpr int kTileRows = 16;
constexpr int64_t kColumnPart = 512;  // rows that are worth a block

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

// Where sums of columns go: result i is that of scale_grad[i], length + i that of bias_grad[i].
struct ColumnSums {
  using Total = double;

  int64_t length;
  Parts parts;
  float* scale_grad;
  float* bias_grad;
  double* totals;  // of parts; null: columns have one

  __device__ double Start() const { return 0; }
  __device__ double Fold(double a, double b) const { return a + b; }
  __device__ void Finish(int64_t result, double total) const {
    float* const to = result < length ? scale_grad : bias_grad;
    if (to != nullptr) to[result < length ? result : result - length] = static_cast<float>(total);
  }
};

// scale_grad and bias_grad; a column is summed by kTileRows threads, in double as on the host.
template <typename T>
__global__ void __launch_bounds__(kTileColumns* kTileRows)
    GradientColumns(const LayerNormGradientArguments args, const ColumnSums sums) {
  INTERP_SHARED(double, scale_sums, [kTileRows][kTileColumns]);
  INTERP_SHARED(double, bias_sums, [kTileRows][kTileColumns]);
  const int64_t tasks = TilesOf(args.length) * sums.parts.count;
  for (int64_t index = blockIdx.x; index < tasks; index += gridDim.x) {
    const Parts::Task task = sums.parts.TaskAt(index);
    const int64_t column = task.of * kTileColumns + threadIdx.x;
    double of_scale = 0;
    double of_bias = 0;
    const int64_t end = column < args.length ? task.end : task.begin;
    for (int64_t row = task.begin + threadIdx.y; row < end; row += kTileRows) {
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
      StoreTotal(sums, column, task.part, of_scale);
      StoreTotal(sums, args.length + column, task.part, of_bias);
    }
    __syncthreads();  // the next tile writes to the sums
  }
}

template <typename T>
absl::Status SumColumns(const LayerNormGradientArguments& args, TakeWorkspace take_workspace,
                        cudaStream_t stream) {
  const Parts parts = CutIntoParts(args.rows, TilesOf(args.length), kColumnPart);
  const int64_t results = 2 * args.length;
  INTERP_ASSIGN_OR_RETURN(const std::optional<Workspace> memory,
                          TakeTotals<double>(parts, results, take_workspace));
  const ColumnSums sums = {args.length, parts, args.scale_grad, args.bias_grad,
                           DataOf<double>(memory)};
  INTERP_RETURN_IF_ERROR(Launch(
      GradientColumns<T>, BlocksFor(TilesOf(args.length) * parts.count, /*work_per_block=*/1),
      dim3(kTileColumns, kTileRows), /*shared_bytes=*/0, stream, args, sums));
  return LaunchFoldParts(sums, results, stream);
}

}  // namespace

absl::Status LayerNormGradient(DType dtype, const LayerNormGradientArguments& args,
                               TakeWorkspace take_workspace, cudaStream_t stream) {
  if (args.length == 0) return absl::OkStatus();
  return WithFloats("layer_norm_grad", dtype, [&](auto type) -> absl::Status {
    using T = typename decltype(type)::type;
    if (args.scale_grad != nullptr || args.bias_grad != nullptr) {
      INTERP_RETURN_IF_ERROR(SumColumns<T>(args, take_workspace, stream));
    }
    if (args.x_grad == nullptr || args.rows == 0) return absl::OkStatus();
    return Launch(GradientRows<T>, RowBlocks(args.rows, args.length), RowThreads(args.length),
                  /*shared_bytes=*/0, stream, args);
  });
}

}  // namespace interp::cuda
