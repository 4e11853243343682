#include <algorithm>

#include "kernels/cuda/element_bytes.h"
#include "kernels/cuda/fold.h"
#include "kernels/cuda/image_windows.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sequences.h"

namespace interp::cuda {
namespace {

// Elements of a window.
__host__ __device__ int64_t WindowSize(const ImageWindows& shape) {
  return shape.channels * shape.kernel[0] * shape.kernel[1];
}

// The threads of a row copy a window.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    CopyImageWindows(const ImageWindows shape, const T* x, T* windows) {
  const int64_t size = WindowSize(shape);
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < shape.rows;
       row += int64_t{gridDim.x} * blockDim.y) {
    const int64_t image = SequenceOfRow(shape.starts, shape.images, row);
    const int64_t window = row - shape.starts[image];
    const int64_t top = window / shape.columns[image] * shape.stride[0] - shape.pad[0];
    const int64_t left = window % shape.columns[image] * shape.stride[1] - shape.pad[1];
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
      const int64_t line = i / shape.kernel[1];
      const int64_t h = top + line % shape.kernel[0];
      const int64_t w = left + i % shape.kernel[1];
      const bool inside = h >= 0 && h < shape.height && w >= 0 && w < shape.width;
      const int64_t plane = image * shape.channels + line / shape.kernel[0];
      windows[row * size + i] = inside ? x[(plane * shape.height + h) * shape.width + w] : T{};
    }
  }
}

// The windows along dimension d, of `count`, that hold a pixel: [first, last].
struct HoldingWindows {
  int64_t first;
  int64_t last;
};
__device__ HoldingWindows WindowsWith(const ImageWindows& shape, int d, int64_t pixel,
                                      int64_t count) {
  const int64_t place = pixel + shape.pad[d];
  const int64_t beyond = place - shape.kernel[d];  // where windows start that just miss it
  return {beyond < 0 ? 0 : beyond / shape.stride[d] + 1,
          std::min(place / shape.stride[d], count - 1)};
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SumPlacesOfPixels(const ImageWindows shape, const T* windows, T* x_grad) {
  const int64_t size = WindowSize(shape);
  const int64_t plane = shape.height * shape.width;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       i < shape.images * shape.channels * plane; i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t image = i / plane / shape.channels;
    const int64_t channel = i / plane % shape.channels;
    const int64_t h = i % plane / shape.width;
    const int64_t w = i % shape.width;
    const int64_t start = shape.starts[image];
    const int64_t columns = shape.columns[image];
    const HoldingWindows lines =
        WindowsWith(shape, 0, h, (shape.starts[image + 1] - start) / columns);
    const HoldingWindows across = WindowsWith(shape, 1, w, columns);
    T sum = 0;
    for (int64_t line = lines.first; line <= lines.last; ++line) {
      const int64_t row = channel * shape.kernel[0] + h + shape.pad[0] - line * shape.stride[0];
      for (int64_t column = across.first; column <= across.last; ++column) {
        sum += windows[(start + line * columns + column) * size + row * shape.kernel[1] + w +
                       shape.pad[1] - column * shape.stride[1]];
      }
    }
    x_grad[i] = sum;
  }
}

}  // namespace

absl::Status UnfoldImages(int element_bytes, const ImageWindows& shape, const void* x,
                          void* windows, cudaStream_t stream) {
  const int64_t size = WindowSize(shape);
  if (shape.rows * size == 0) return absl::OkStatus();
  return WithBytes(element_bytes, [&](auto type) {
    using T = typename decltype(type)::type;
    return Launch(CopyImageWindows<T>, RowBlocks(shape.rows, size), RowThreads(size),
                  /*shared_bytes=*/0, stream, shape, static_cast<const T*>(x),
                  static_cast<T*>(windows));
  });
}

absl::Status SumImageWindows(DType dtype, const ImageWindows& shape, const void* windows,
                             void* x_grad, cudaStream_t stream) {
  const int64_t pixels = shape.images * shape.channels * shape.height * shape.width;
  if (pixels == 0) return absl::OkStatus();
  return WithWideFloats("sums of windows of images", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return Launch(SumPlacesOfPixels<T>, BlocksFor(pixels, kBlockThreads), kBlockThreads,
                  /*shared_bytes=*/0, stream, shape, static_cast<const T*>(windows),
                  static_cast<T*>(x_grad));
  });
}

}  // namespace interp::cuda
