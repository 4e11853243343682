// Transposed convolutions by rows: a product makes of input rows what each pixel adds to the
// outputs that a kernel row reaches, which is then added where it belongs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/conv/conv_direct.h"
#include "kernels/product/gemm.h"

namespace interp::nn {

// The filter as one packed matrix [group_in, kernel_width * group_out] per kernel row and group, or
// as PackBlocks makes it. Depthwise filters are instead one row of channels per kernel position.
template <typename T>
struct PackedFilter {
  AlignedArray<T> data;
  int64_t stride = 0;        // from one matrix or row to the next
  std::vector<T> bias = {};  // by output channel, once or as BlockRow wants it; empty: none

  const T* bias_data() const { return bias.empty() ? nullptr : bias.data(); }
};

// out[x * stride + kx * dilation - pad, :] += columns[x, kx, :] for all x and kx that stay inside.
template <typename T>
void AddColumns(const WindowAxis& axis, const T* columns, int64_t channels, T* out,
                int64_t out_stride) {
  for (int64_t kx = 0; kx < axis.kernel; ++kx) {
    const OutputRange valid = ValidOutputs(axis, kx);
    for (int64_t x = valid.begin; x < valid.end; ++x) {
      T* to = out + (x * axis.stride + kx * axis.dilation - axis.pad_begin) * out_stride;
      const T* from = columns + (x * axis.kernel + kx) * channels;
      for (int64_t c = 0; c < channels; ++c) to[c] += from[c];
    }
  }
}

// The same for a depthwise filter: `weights` has one row of channels per kx.
template <typename T>
void AddDepthwise(const WindowAxis& axis, const T* in, const T* weights, int64_t channels, T* out) {
  for (int64_t kx = 0; kx < axis.kernel; ++kx) {
    const OutputRange valid = ValidOutputs(axis, kx);
    const T* w = weights + kx * channels;
    for (int64_t x = valid.begin; x < valid.end; ++x) {
      T* to = out + (x * axis.stride + kx * axis.dilation - axis.pad_begin) * channels;
      const T* from = in + x * channels;
      for (int64_t c = 0; c < channels; ++c) to[c] += from[c] * w[c];
    }
  }
}

// Index into the small image whose window position k covers `at` of the large one, or -1.
inline int64_t SourceOfOutput(const WindowAxis& axis, int64_t at, int64_t k) {
  const int64_t offset = at + axis.pad_begin - k * axis.dilation;
  if (offset < 0 || offset % axis.stride != 0) return -1;
  return offset / axis.stride < axis.out ? offset / axis.stride : -1;
}

// Rows of the output. What a kernel row makes of several input rows is one product: where they are
// short, each would read all of the filter for a few pixels.
template <typename T>
struct RowTask {
  const ConvProblem& problem;
  Window window;  // three axes
  const PackedFilter<T>& filter;
  FusedActivation activation;

  bool by_channel() const { return problem.depthwise() && problem.group_out() == 1; }
  // Elements of what an input row becomes.
  int64_t row_columns() const { return window[2].out * window[2].kernel * problem.group_out(); }
  // Input rows that are multiplied at once. More would make columns that leave the L1 cache.
  int64_t rows_at_once() const {
    constexpr int64_t kPixels = 64;
    return std::clamp<int64_t>(kPixels / window[2].out, 1, window[1].out);
  }
  int64_t columns_size() const { return by_channel() ? 0 : rows_at_once() * row_columns(); }
  int64_t in_row() const { return window[2].out * problem.in_channels; }
  int64_t out_row() const { return window[2].in * problem.out_channels; }

  // Adds what `count` input rows from `in` on contribute through kernel row `row` to the output
  // rows from `out` on that are the stride apart. `columns` is scratch.
  void AddRows(const T* in, int64_t count, int64_t row, T* out, T* columns) const {
    const T* packed = filter.data.data();
    const WindowAxis& x = window[2];
    const int64_t out_step = window[1].stride * out_row();
    if (by_channel()) {
      for (int64_t i = 0; i < count; ++i) {
        AddDepthwise(x, in + i * in_row(), packed + row * x.kernel * filter.stride,
                     problem.in_channels, out + i * out_step);
      }
      return;
    }
    const int64_t rows = window[0].kernel * window[1].kernel;
    for (int64_t g = 0; g < problem.groups; ++g) {
      GemmPacked(count * x.out, problem.group_in(), x.kernel * problem.group_out(),
                 in + g * problem.group_in(), problem.in_channels,
                 packed + (g * rows + row) * filter.stride, columns, x.kernel * problem.group_out(),
                 /*accumulate=*/false);
      for (int64_t i = 0; i < count; ++i) {
        AddColumns(x, columns + i * row_columns(), problem.group_out(),
                   out + i * out_step + g * problem.group_out(), problem.out_channels);
      }
    }
  }

  // Rows [first, last) of plane `z` of the output, of which `out` is the first row.
  void Run(const T* image, int64_t z, int64_t first, int64_t last, const T* bias, T* out,
           T* columns) const {
    const int64_t channels = problem.out_channels;
    const int64_t pixels = (last - first) * window[2].in;
    for (int64_t i = 0; i < pixels; ++i) {
      for (int64_t c = 0; c < channels; ++c) {
        out[i * channels + c] = bias == nullptr ? T{0} : bias[c];
      }
    }
    for (int64_t kz = 0; kz < window[0].kernel; ++kz) {
      const int64_t iz = SourceOfOutput(window[0], z, kz);
      if (iz < 0) continue;
      const T* const plane = image + iz * window[1].out * in_row();
      for (int64_t ky = 0; ky < window[1].kernel; ++ky) {
        int64_t y = first;
        while (y < last && SourceOfOutput(window[1], y, ky) < 0) ++y;
        while (y < last && SourceOfOutput(window[1], y, ky) >= 0) {
          const int64_t iy = SourceOfOutput(window[1], y, ky);
          const int64_t left = std::min((last - 1 - y) / window[1].stride + 1, window[1].out - iy);
          const int64_t count = std::min(left, rows_at_once());
          AddRows(plane + iy * in_row(), count, kz * window[1].kernel + ky,
                  out + (y - first) * out_row(), columns);
          y += count * window[1].stride;
        }
      }
    }
    if constexpr (std::is_same_v<T, float>) {
      ApplyActivation(activation, out, pixels * channels);
    }
  }
};

}  // namespace interp::nn
