#include <algorithm>

#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sequence_conv.h"
#include "kernels/cuda/sequences.h"

namespace interp::cuda {
namespace {

struct RowSpan {
  int64_t first;
  int64_t count;
};

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
  ForEachRowOf(shape.count * shape.length, [&](int64_t i) {
    const int64_t row = shape.first + i / shape.length;
    const int64_t sequence = SequenceOfRow(sequences.offsets, sequences.count, row);
    const T* const from =
        RowAt(shape, row + shape.start + i % shape.length, sequences.offsets[sequence],
              sequences.offsets[sequence + 1], x, padding);
    for (int64_t j = threadIdx.x; j < sequences.width; j += blockDim.x) {
      windows[i * sequences.width + j] = from == nullptr ? T{0} : from[j];
    }
  });
}

// `sum` and element `j` of row `position` in the windows in memory of the rows [begin, end).
template <typename T>
__device__ T AddPlaces(const RowWindows& shape, const T* windows, int64_t position, int64_t begin,
                       int64_t end, int64_t j, T sum) {
  const int64_t last = position - shape.start;
  const int64_t first = std::max(std::max(begin, shape.first), last - shape.length + 1);
  const int64_t stop = std::min(std::min(end, shape.first + shape.count), last + 1);
  for (int64_t row = first; row < stop; ++row) {
    sum += windows[((row - shape.first) * shape.length + last - row) * shape.sequences.width + j];
  }
  return sum;
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    AddPlacesOfRows(const RowWindows shape, const RowSpan span, const T* windows, T* x_grad) {
  const PackedSequences& sequences = shape.sequences;
  ForEachRowOf(span.count, [&](int64_t i) {
    const int64_t row = span.first + i;
    const int64_t sequence = SequenceOfRow(sequences.offsets, sequences.count, row);
    for (int64_t j = threadIdx.x; j < sequences.width; j += blockDim.x) {
      T& sum = x_grad[row * sequences.width + j];
      sum = AddPlaces(shape, windows, row, sequences.offsets[sequence],
                      sequences.offsets[sequence + 1], j, sum);
    }
  });
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    AddPlacesOfPadding(const RowWindows shape, const T* windows, T* padding_grad) {
  const PackedSequences& sequences = shape.sequences;
  const int64_t first = SequenceOfRow(sequences.offsets, sequences.count, shape.first);
  ForEachRowOf(shape.before + shape.behind, [&](int64_t row) {
    const int64_t distance = row - shape.before;
    for (int64_t j = threadIdx.x; j < sequences.width; j += blockDim.x) {
      T sum = padding_grad[row * sequences.width + j];
      for (int64_t s = first; s < sequences.count; ++s) {
        const int64_t begin = sequences.offsets[s];
        const int64_t end = sequences.offsets[s + 1];
        if (begin >= shape.first + shape.count) break;
        sum =
            AddPlaces(shape, windows, distance + (distance < 0 ? begin : end), begin, end, j, sum);
      }
      padding_grad[row * sequences.width + j] = sum;
    }
  });
}

// The rows that the windows in memory can hold.
RowSpan RowsInWindows(const RowWindows& shape) {
  const int64_t rows = shape.sequences.rows;
  const int64_t first = std::clamp<int64_t>(shape.first + shape.start, 0, rows);
  const int64_t end = shape.first + shape.count - 1 + shape.start + shape.length;
  return {first, std::clamp<int64_t>(end, first, rows) - first};
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
    return LaunchRows(CopyRowWindows<T>, shape.count * shape.length, shape.sequences.width, stream,
                      shape, static_cast<const T*>(x), static_cast<const T*>(padding),
                      static_cast<T*>(windows));
  });
}

absl::Status AddRowWindows(DType dtype, const RowWindows& shape, const void* windows, void* x_grad,
                           cudaStream_t stream) {
  const RowSpan span = RowsInWindows(shape);
  return WithWideFloats("sums of windows", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchRows(AddPlacesOfRows<T>, span.count, shape.sequences.width, stream, shape, span,
                      static_cast<const T*>(windows), static_cast<T*>(x_grad));
  });
}

absl::Status AddPaddingWindows(DType dtype, const RowWindows& shape, const void* windows,
                               void* padding_grad, cudaStream_t stream) {
  return WithWideFloats("sums of padding", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchRows(AddPlacesOfPadding<T>, shape.before + shape.behind, shape.sequences.width,
                      stream, shape, static_cast<const T*>(windows), static_cast<T*>(padding_grad));
  });
}

}  // namespace interp::cuda
