#include "kernels/cuda/cvm.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sequences.h"

namespace interp::cuda {
namespace {

constexpr int64_t kCounts = 2;

// A thread for each element of y.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) CopyRows(const CvmArguments args) {
  const int64_t y_width = args.keeps_counts ? args.width : args.width - kCounts;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < args.rows * y_width;
       i += int64_t{gridDim.x} * blockDim.x) {
    const T* const row = static_cast<const T*>(args.x) + i / y_width * args.width;
    const int64_t column = i % y_width;
    T value = row[args.keeps_counts ? column : column + kCounts];
    if (args.keeps_counts && column < kCounts) {
      const T shows = log(row[0] + T{1});
      value = column == 0 ? shows : log(row[1] + T{1}) - shows;
    }
    static_cast<T*>(args.y)[i] = value;
  }
}

// A thread for each element of the gradient.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) CopyGradients(const CvmGradientArguments args) {
  const int64_t given = args.keeps_counts ? args.width : args.width - kCounts;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < args.rows * args.width;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t row = i / args.width;
    const int64_t column = i % args.width;
    T value;
    if (column < kCounts) {
      const int64_t of =
          args.offsets == nullptr ? row : SequenceOfRow(args.offsets, args.sequences, row);
      value = static_cast<const T*>(args.counts)[of * kCounts + column];
    } else {
      value = static_cast<const T*>(args.y_grad)[row * given + column - (args.width - given)];
    }
    static_cast<T*>(args.x_grad)[i] = value;
  }
}

}  // namespace

absl::Status Cvm(DType dtype, const CvmArguments& arguments, cudaStream_t stream) {
  const int64_t y_width = arguments.keeps_counts ? arguments.width : arguments.width - kCounts;
  return WithWideFloats("cvm", dtype, [&](auto type) {
    return LaunchElements(CopyRows<typename decltype(type)::type>, arguments.rows * y_width, stream,
                          arguments);
  });
}

absl::Status CvmGradient(DType dtype, const CvmGradientArguments& arguments, cudaStream_t stream) {
  return WithWideFloats("the gradient of cvm", dtype, [&](auto type) {
    return LaunchElements(CopyGradients<typename decltype(type)::type>,
                          arguments.rows * arguments.width, stream, arguments);
  });
}

}  // namespace interp::cuda
