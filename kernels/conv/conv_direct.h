// Convolution by plain loops, for the element types that have no fast path. Any strides.
#pragma once

#include <algorithm>

#include "kernels/conv/conv_problem.h"

namespace interp::nn {

// A window or view extended to three spatial axes by leading axes of size one.
inline Window PadTo3(const Window& window) {
  Window padded;
  padded.rank = 3;
  for (int i = 0; i < window.rank; ++i) padded[3 - window.rank + i] = window[i];
  return padded;
}
inline std::array<int64_t, 5> Strides3(const ImageView& view) {
  std::array<int64_t, 5> strides = {view.strides[0], view.strides[1], 0, 0, 0};
  for (int i = 0; i < view.spatial_rank(); ++i) {
    strides[5 - view.spatial_rank() + i] = view.strides[2 + i];
  }
  return strides;
}

// Adds values[c] to every pixel of channel c. Any strides.
template <typename T>
void AddPerChannel(const ImageView& view, const T* values, T* data) {
  const std::array<int64_t, 5> strides = Strides3(view);
  std::array<int64_t, 3> size = {1, 1, 1};
  for (int i = 0; i < view.spatial_rank(); ++i) size[3 - view.spatial_rank() + i] = view.spatial(i);
  for (int64_t map = 0; map < view.batch() * view.channels(); ++map) {
    const int64_t c = map % view.channels();
    T* y = data + map / view.channels() * strides[0] + c * strides[1];
    for (int64_t d = 0; d < size[0]; ++d) {
      for (int64_t h = 0; h < size[1]; ++h) {
        T* row = y + d * strides[2] + h * strides[3];
        for (int64_t w = 0; w < size[2]; ++w) row[w * strides[4]] += values[c];
      }
    }
  }
}

// Calls row(in_offset, out_offset, filter_offset, count, in_step, out_step) for every window
// position k and every run of outputs along the last axis that sees valid input at k.
template <typename Row>
void ForEachWindowRow(const Window& window, const std::array<int64_t, 5>& in,
                      const std::array<int64_t, 5>& out, const std::array<int64_t, 5>& filter,
                      const Row& row) {
  const WindowAxis& d = window[0];
  const WindowAxis& h = window[1];
  const WindowAxis& w = window[2];
  for (int64_t kd = 0; kd < d.kernel; ++kd) {
    const OutputRange od = ValidOutputs(d, kd);
    for (int64_t kh = 0; kh < h.kernel; ++kh) {
      const OutputRange oh = ValidOutputs(h, kh);
      for (int64_t kw = 0; kw < w.kernel; ++kw) {
        const OutputRange ow = ValidOutputs(w, kw);
        if (ow.begin >= ow.end) continue;
        const int64_t iw = ow.begin * w.stride + kw * w.dilation - w.pad_begin;
        const int64_t filter_offset = kd * filter[2] + kh * filter[3] + kw * filter[4];
        for (int64_t z = od.begin; z < od.end; ++z) {
          const int64_t iz = z * d.stride + kd * d.dilation - d.pad_begin;
          for (int64_t y = oh.begin; y < oh.end; ++y) {
            const int64_t iy = y * h.stride + kh * h.dilation - h.pad_begin;
            row(iz * in[2] + iy * in[3] + iw * in[4], z * out[2] + y * out[3] + ow.begin * out[4],
                filter_offset, ow.end - ow.begin, w.stride * in[4], out[4]);
          }
        }
      }
    }
  }
}

// out += conv(in, filter). `out` holds the bias or zeros before.
template <typename T>
void ConvDirect(const ConvProblem& problem, const ImageView& in_view, const T* in,
                const ImageView& filter_view, const T* filter, const ImageView& out_view, T* out,
                int num_threads) {
  const Window window = PadTo3(problem.window);
  const std::array<int64_t, 5> in_strides = Strides3(in_view);
  const std::array<int64_t, 5> out_strides = Strides3(out_view);
  const std::array<int64_t, 5> filter_strides = Strides3(filter_view);
  const int64_t maps = problem.batch * problem.out_channels;
  ParallelFor(num_threads, maps, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t map = begin; map < end; ++map) {
      const int64_t n = map / problem.out_channels;
      const int64_t oc = map % problem.out_channels;
      const int64_t first = oc / problem.group_out() * problem.group_in();
      T* y = out + n * out_strides[0] + oc * out_strides[1];
      for (int64_t ic = 0; ic < problem.group_in(); ++ic) {
        const T* x = in + n * in_strides[0] + (first + ic) * in_strides[1];
        const T* w = filter + oc * filter_strides[0] + ic * filter_strides[1];
        ForEachWindowRow(
            window, in_strides, out_strides, filter_strides,
            [=](int64_t i, int64_t o, int64_t k, int64_t count, int64_t in_step, int64_t out_step) {
              const T weight = w[k];
              for (int64_t j = 0; j < count; ++j) {
                y[o + j * out_step] += weight * x[i + j * in_step];
              }
            });
      }
    }
  });
}

}  // namespace interp::nn
