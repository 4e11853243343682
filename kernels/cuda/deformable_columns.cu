#include "kernels/cuda/deformable_columns.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sequences.h"

namespace interp::cuda {
namespace {

// The value between the pixels of an image, times `factor`; 0 from a pixel outside on and where the
// point is NaN.
template <typename T>
__device__ T SampleAt(const T* image, int64_t height, int64_t width, T y, T x, T factor) {
  if (!(y > -1 && x > -1 && y < static_cast<T>(height) && x < static_cast<T>(width))) return T{0};
  const auto top = static_cast<int64_t>(floor(y));
  const auto left = static_cast<int64_t>(floor(x));
  const T dy = y - static_cast<T>(top);
  const T dx = x - static_cast<T>(left);
  T sum = 0;
  INTERP_UNROLL
  for (int i = 0; i < 2; ++i) {
    if (top + i < 0 || top + i >= height) continue;
    INTERP_UNROLL
    for (int j = 0; j < 2; ++j) {
      if (left + j < 0 || left + j >= width) continue;
      const T weight = (i == 0 ? 1 - dy : dy) * (j == 0 ? 1 - dx : dx) * factor;
      sum += weight * image[(top + i) * width + left + j];
    }
  }
  return sum;
}

// The window of one channel for each thread: neighbours write neighbours.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) SampleWindows(const DeformableColumns args) {
  const int64_t places = args.out_height * args.out_width;
  const int64_t positions = args.kernel[0] * args.kernel[1];
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       i < args.images * args.channels * places; i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t place = i % places;
    const int64_t plane = i / places;  // image and channel
    const int64_t group = plane % args.channels / (args.channels / args.groups);
    const int64_t first = (plane / args.channels * args.groups + group) * positions;
    const int64_t top = place / args.out_width * args.stride[0] - args.pad[0];
    const int64_t left = place % args.out_width * args.stride[1] - args.pad[1];
    const T* const image = static_cast<const T*>(args.x) + plane * args.height * args.width;
    const T* offset = static_cast<const T*>(args.offset) + 2 * first * places + place;
    T* column = static_cast<T*>(args.columns) + plane * positions * places + place;
    for (int64_t k = 0; k < positions; ++k, offset += 2 * places, column += places) {
      const T y = static_cast<T>(top + k / args.kernel[1] * args.dilation[0]) + offset[0];
      const T x = static_cast<T>(left + k % args.kernel[1] * args.dilation[1]) + offset[places];
      const T factor = args.mask == nullptr
                           ? T{1}
                           : static_cast<const T*>(args.mask)[(first + k) * places + place];
      *column = SampleAt(image, args.height, args.width, y, x, factor);
    }
  }
}

}  // namespace

absl::Status SampleColumns(DType dtype, const DeformableColumns& columns, cudaStream_t stream) {
  return WithWideFloats("samples of a deformable convolution", dtype, [&](auto type) {
    return LaunchElements(
        SampleWindows<typename decltype(type)::type>,
        columns.images * columns.channels * columns.out_height * columns.out_width, stream,
        columns);
  });
}

}  // namespace interp::cuda
