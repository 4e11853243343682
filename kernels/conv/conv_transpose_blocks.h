// Transposed convolutions whose windows lie side by side (the stride is the size of the kernel): a
// row of input pixels becomes, by one matrix product, the blocks of outputs that they alone make.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/conv/conv_direct.h"
#include "kernels/product/gemm.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {

// True when every output comes from exactly one input pixel.
inline bool WindowsAreBlocks(const ConvProblem& problem) {
  if (problem.groups != 1) return false;
  for (int i = 0; i < problem.window.rank; ++i) {
    const WindowAxis& axis = problem.window[i];
    if (axis.stride != axis.kernel || axis.dilation != 1 || axis.pad_begin != 0 ||
        axis.in != axis.out * axis.kernel) {
      return false;
    }
  }
  return true;
}

// Floats or doubles of a block: kernel positions by output channels, then whole vectors of them.
// The padding is computed, so that the product stores nothing but whole vectors.
template <typename T>
int64_t BlockSize(const ConvProblem& problem) {
  constexpr int64_t kLanes = VectorOf<T>::kLanes;
  int64_t size = problem.out_channels;
  for (int i = 0; i < problem.window.rank; ++i) size *= problem.window[i].kernel;
  return (size + kLanes - 1) / kLanes * kLanes;
}

// `filter` in dense I,O,kernel order as one packed matrix: input channels by BlockSize.
// May throw std::bad_alloc.
template <typename T>
AlignedArray<T> PackBlocks(const ConvProblem& problem, const std::vector<T>& filter) {
  const int64_t size = BlockSize<T>(problem);
  const int64_t channels = problem.out_channels;
  const int64_t positions = std::ssize(filter) / (problem.in_channels * channels);
  std::vector<T> matrix(static_cast<size_t>(problem.in_channels * size));
  for (int64_t i = 0; i < problem.in_channels; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      const T* const from = filter.data() + (i * channels + c) * positions;
      for (int64_t at = 0; at < positions; ++at) matrix[i * size + at * channels + c] = from[at];
    }
  }
  AlignedArray<T> packed(PackedSize<T>(problem.in_channels, size));
  PackMatrix(problem.in_channels, size, matrix.data(), size, int64_t{1}, packed.data());
  return packed;
}

// One row of input pixels: row `y` of plane `z` of an image.
template <typename T>
struct BlockRow {
  const ConvProblem& problem;
  Window window;  // three axes
  const T* packed = nullptr;
  const T* bias = nullptr;  // by kernel column, then by output channel; may be null
  FusedActivation activation = {};

  // Elements of scratch.
  int64_t columns_size() const { return window[2].out * BlockSize<T>(problem); }

  // `in` is the row, `out` the image. `columns` is scratch.
  void Run(const T* in, int64_t z, int64_t y, T* out, T* columns) const {
    const int64_t size = BlockSize<T>(problem);
    const int64_t width = window[2].kernel * problem.out_channels;
    const int64_t row_size = window[2].in * problem.out_channels;
    GemmPacked(window[2].out, problem.in_channels, size, in, problem.in_channels, packed, columns,
               size, /*accumulate=*/false);
    for (int64_t kz = 0; kz < window[0].kernel; ++kz) {
      for (int64_t ky = 0; ky < window[1].kernel; ++ky) {
        const int64_t plane = z * window[0].kernel + kz;
        T* const row = out + (plane * window[1].in + y * window[1].kernel + ky) * row_size;
        const T* const from = columns + (kz * window[1].kernel + ky) * width;
        for (int64_t x = 0; x < window[2].out; ++x) Copy(from + x * size, width, row + x * width);
        if constexpr (std::is_same_v<T, float>) ApplyActivation(activation, row, row_size);
      }
    }
  }

  void Copy(const T* from, int64_t width, T* to) const {
    if (bias == nullptr) {
      for (int64_t i = 0; i < width; ++i) to[i] = from[i];
      return;
    }
    for (int64_t i = 0; i < width; ++i) to[i] = from[i] + bias[i];
  }
};

}  // namespace interp::nn
