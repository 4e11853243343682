#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sequence_conv.h"
#include "kernels/cuda/sequences.h"

namespace interp::cuda {
namespace {

// Calls body(i) for `rows` rows, by all threads of a row.
template <typename Body>
__device__ void ForEachRowOf(int64_t rows, const Body& body) {
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < rows;
       row += int64_t{gridDim.x} * blockDim.y) {
    body(row);
  }
}

// Row `position` of the sequence [begin, end), null where it is 0.
template <typename T>
__device__ const T* RowAt(const RowWindows& shape, int64_t position, int64_t begin, int64_t end,
                          const T* x, const T* padding) {
  const int64_t width = shape.sequences.width;
  if (position >= begin && position < end) return x + position * width;
  if (padding == nullptr) return nullptr;
  return padding + (shape.before + position - (position < begin ? begin : end)) * width;
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    CopyRowWindows(const RowWindows shape, const T* x, const T* padding, T* windows) {
  const PackedSequences& sequences = shape.sequences;
  ForEachRowOf(sequences.rows * shape.length, [&](int64_t i) {
    const int64_t row = i / shape.length;
    const int64_t sequence = SequenceOfRow(sequences.offsets, sequences.count, row);
    const T* const from =
        RowAt(shape, row + shape.start + i % shape.length, sequences.offsets[sequence],
              sequences.offsets[sequence + 1], x, padding);
    for (int64_t j = threadIdx.x; j < sequences.width; j += blockDim.x) {
      windows[i * sequences.width + j] = from == nullptr ? T{0} : from[j];
    }
  });
}

// The sum of element `j` of row `position` over the windows of the rows [begin, end).
template <typename T>
__device__ T SumOfPlaces(const RowWindows& shape, const T* windows, int64_t position, int64_t begin,
                         int64_t end, int64_t j) {
  const int64_t last = position - shape.start;
  const int64_t first = last - shape.length + 1;
  T sum = 0;
  for (int64_t row = std::max(begin, first); row <= std::min(end - 1, last); ++row) {
    sum += windows[(row * shape.length + last - row) * shape.sequences.width + j];
  }
  return sum;
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SumPlacesOfRows(const RowWindows shape, const T* windows, T* x_grad) {
  const PackedSequences& sequences = shape.sequences;
  ForEachRowOf(sequences.rows, [&](int64_t row) {
    const int64_t sequence = SequenceOfRow(sequences.offsets, sequences.count, row);
    for (int64_t j = threadIdx.x; j < sequences.width; j += blockDim.x) {
      x_grad[row * sequences.width + j] = SumOfPlaces(
          shape, windows, row, sequences.offsets[sequence], sequences.offsets[sequence + 1], j);
    }
  });
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SumPlacesOfPadding(const RowWindows shape, const T* windows, T* padding_grad) {
  const PackedSequences& sequences = shape.sequences;
  ForEachRowOf(shape.before + shape.behind, [&](int64_t row) {
    const int64_t distance = row - shape.before;
    for (int64_t j = threadIdx.x; j < sequences.width; j += blockDim.x) {
      T sum = 0;
      for (int64_t s = 0; s < sequences.count; ++s) {
        const int64_t begin = sequences.offsets[s];
        const int64_t end = sequences.offsets[s + 1];
        sum += SumOfPlaces(shape, windows, distance + (distance < 0 ? begin : end), begin, end, j);
      }
      padding_grad[row * sequences.width + j] = sum;
    }
  });
}

// The threads of a row of `width` elements each take its elements.
template <typename... Params, typename... Args>
absl::Status LaunchRows(void (*kernel)(Params...), int64_t rows, int64_t width, cudaStream_t stream,
                        const Args&... args) {
  if (rows * width == 0) return absl::OkStatus();
  return Launch(kernel, RowBlocks(rows, width), RowThreads(width), /*shared_bytes=*/0, stream,
                args...);
}

}  // namespace

absl::Status UnfoldRows(DType dtype, const RowWindows& shape, const void* x, const void* padding,
                        void* windows, cudaStream_t stream) {
  return WithWideFloats("windows over rows", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchRows(CopyRowWindows<T>, shape.sequences.rows * shape.length, shape.sequences.width,
                      stream, shape, static_cast<const T*>(x), static_cast<const T*>(padding),
                      static_cast<T*>(windows));
  });
}

absl::Status SumRowWindows(DType dtype, const RowWindows& shape, const void* windows, void* x_grad,
                           cudaStream_t stream) {
  return WithWideFloats("sums of windows", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchRows(SumPlacesOfRows<T>, shape.sequences.rows, shape.sequences.width, stream,
                      shape, static_cast<const T*>(windows), static_cast<T*>(x_grad));
  });
}

absl::Status SumPaddingWindows(DType dtype, const RowWindows& shape, const void* windows,
                               void* padding_grad, cudaStream_t stream) {
  return WithWideFloats("sums of padding", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchRows(SumPlacesOfPadding<T>, shape.before + shape.behind, shape.sequences.width,
                      stream, shape, static_cast<const T*>(windows), static_cast<T*>(padding_grad));
  });
}

}  // namespace interp::cuda
