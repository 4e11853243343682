#include "kernels/cuda/data_norm.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/sequences.h"

namespace interp::cuda {
namespace {

constexpr int kRowsOfTile = kBlockThreads / kTileColumns;

// Whether the slot of a column shows nothing in the row that `x` is.
template <typename T>
__device__ bool IsHidden(const DataNormShape& shape, const T* x, int64_t column) {
  if (shape.slot_dim <= 0) return false;
  const T first = x[column / shape.slot_dim * shape.slot_dim];
  return first < T(1e-7) && first > T(-1e-7);
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads) FindMeans(const DataNormArguments args) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < args.shape.width;
       i += int64_t{gridDim.x} * blockDim.x) {
    const T size = static_cast<const T*>(args.size)[i];
    static_cast<T*>(args.means)[i] = static_cast<const T*>(args.sum)[i] / size;
    static_cast<T*>(args.scales)[i] = sqrt(size / static_cast<const T*>(args.square_sum)[i]);
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads) NormElements(const DataNormArguments args) {
  const int64_t width = args.shape.width;
  const T* const weight = static_cast<const T*>(args.weight);
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < args.shape.rows * width;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t column = i % width;
    const T* const row = static_cast<const T*>(args.x) + (i - column);
    T value = (row[column] - static_cast<const T*>(args.means)[column]) *
              static_cast<const T*>(args.scales)[column];
    if (weight != nullptr) {
      value = value * weight[column] + static_cast<const T*>(args.bias)[column];
    }
    static_cast<T*>(args.y)[i] = IsHidden(args.shape, row, column) ? T{0} : value;
  }
}

// Of a column, over the rows that show something.
struct ColumnSums {
  double count;
  double value;
  double square;
  double product;
  double gradient;

  __device__ void Add(const ColumnSums& other) {
    count += other.count;
    value += other.value;
    square += other.square;
    product += other.product;
    gradient += other.gradient;
  }
};

template <typename T>
__device__ ColumnSums SumOwnRows(const DataNormGradientArguments& args, int64_t column) {
  ColumnSums sums = {};
  const int64_t width = args.shape.width;
  for (int64_t row = threadIdx.y; row < args.shape.rows; row += blockDim.y) {
    const T* const x = static_cast<const T*>(args.x) + row * width;
    if (IsHidden(args.shape, x, column)) continue;
    const T centered = x[column] - static_cast<const T*>(args.means)[column];
    const T grad = static_cast<const T*>(args.y_grad)[row * width + column];
    sums.Add({1.0, static_cast<double>(x[column]), static_cast<double>(centered * centered),
              static_cast<double>(grad * centered * static_cast<const T*>(args.scales)[column]),
              static_cast<double>(grad)});
  }
  return sums;
}

template <typename T>
__device__ void Put(void* to, int64_t column, double value) {
  if (to != nullptr) static_cast<T*>(to)[column] = static_cast<T>(value);
}

template <typename T>
__device__ void Give(const DataNormGradientArguments& args, int64_t column,
                     const ColumnSums& sums) {
  const bool means = args.shape.slot_dim > 0 && sums.count > 0;
  const double share = means ? 1 / sums.count : 1;
  Put<T>(args.size, column, sums.count * share);
  Put<T>(args.sum, column, sums.value * share);
  Put<T>(args.square_sum, column, sums.square * share + sums.count * args.epsilon);
  Put<T>(args.weight_grad, column, sums.product);
  Put<T>(args.bias_grad, column, sums.gradient);
}

// A tile of neighbouring columns for each block, a column for threads of one threadIdx.x.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) SumColumns(const DataNormGradientArguments args) {
  INTERP_SHARED(ColumnSums, partial, [kRowsOfTile][kTileColumns]);
  for (int64_t tile = blockIdx.x; tile < TilesOf(args.shape.width); tile += gridDim.x) {
    const int64_t column = tile * kTileColumns + threadIdx.x;
    const bool inside = column < args.shape.width;
    if (inside) partial[threadIdx.y][threadIdx.x] = SumOwnRows<T>(args, column);
    __syncthreads();
    if (inside && threadIdx.y == 0) {
      ColumnSums sums = partial[0][threadIdx.x];
      for (int row = 1; row < kRowsOfTile; ++row) sums.Add(partial[row][threadIdx.x]);
      Give<T>(args, column, sums);
    }
    __syncthreads();  // the next tile is written
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    ScaleGradients(const DataNormGradientArguments args) {
  const int64_t width = args.shape.width;
  const T* const weight = static_cast<const T*>(args.weight);
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < args.shape.rows * width;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t column = i % width;
    const T* const row = static_cast<const T*>(args.x) + (i - column);
    T gradient = static_cast<const T*>(args.y_grad)[i] * static_cast<const T*>(args.scales)[column];
    if (weight != nullptr) {
      gradient = IsHidden(args.shape, row, column) ? T{0} : gradient * weight[column];
    }
    static_cast<T*>(args.x_grad)[i] = gradient;
  }
}

}  // namespace

absl::Status DataNorm(DType dtype, const DataNormArguments& arguments, cudaStream_t stream) {
  const DataNormShape& shape = arguments.shape;
  return WithWideFloats("data_norm", dtype, [&](auto type) -> absl::Status {
    using T = typename decltype(type)::type;
    INTERP_RETURN_IF_ERROR(LaunchElements(FindMeans<T>, shape.width, stream, arguments));
    return LaunchElements(NormElements<T>, shape.rows * shape.width, stream, arguments);
  });
}

absl::Status DataNormGradient(DType dtype, const DataNormGradientArguments& arguments,
                              cudaStream_t stream) {
  const DataNormShape& shape = arguments.shape;
  if (shape.width == 0) return absl::OkStatus();
  return WithWideFloats("the gradient of data_norm", dtype, [&](auto type) -> absl::Status {
    using T = typename decltype(type)::type;
    INTERP_RETURN_IF_ERROR(Launch(SumColumns<T>, BlocksFor(TilesOf(shape.width), 1),
                                  dim3(kTileColumns, kRowsOfTile), /*shared_bytes=*/0, stream,
                                  arguments));
    if (arguments.x_grad == nullptr) return absl::OkStatus();
    return LaunchElements(ScaleGradients<T>, shape.rows * shape.width, stream, arguments);
  });
}

}  // namespace interp::cuda
