// deformable_conv and deformable_conv_v1: attributes, shapes and samples, for both directions.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/conv/conv_problem.h"
#include "kernels/conv/image.h"
#include "kernels/product/gemm.h"
#include "kernels/util/data_or_null.h"

namespace interp::nn {

// The first inputs of an op and of its gradient.
inline constexpr int kDeformableInput = 0;
inline constexpr int kDeformableOffset = 1;
inline constexpr int kDeformableFilter = 2;
inline constexpr int kDeformableMask = 3;

struct DeformableAttrs {
  ConvAttrs conv;
  int64_t deformable_groups = 1;
};

DeformableAttrs ReadDeformable(AttrReader& reader);

// Checks the shape of Input against the attributes and Filter.
absl::StatusOr<ConvProblem> ResolveDeformable(const OpContext& ctx);
// Checks those of Offset and Mask, too.
absl::StatusOr<ConvProblem> CheckDeformable(const OpContext& ctx);

// Where one position of a window reads the image, and what the sample is multiplied by.
template <typename T>
struct SamplePoint {
  T y, x, factor;
};

// The neighbours of a point between pixels and their weights.
template <typename T>
struct SamplePixels {
  int64_t y0 = 0;
  int64_t x0 = 0;
  T dy = 0;
  T dx = 0;
  bool inside = false;  // by less than a pixel at least

  SamplePixels(T y, T x, int64_t height, int64_t width) {
    // Also turns NaN away.
    inside = y > -1 && x > -1 && y < static_cast<T>(height) && x < static_cast<T>(width);
    if (!inside) return;
    y0 = static_cast<int64_t>(std::floor(y));
    x0 = static_cast<int64_t>(std::floor(x));
    dy = y - static_cast<T>(y0);
    dx = x - static_cast<T>(x0);
  }

  // Calls body(pixel, upper in y, upper in x) for the neighbours in the image.
  template <typename Body>
  void ForEach(int64_t height, int64_t width, const Body& body) const {
    if (!inside) return;
    for (int64_t i = 0; i < 2; ++i) {
      if (y0 + i < 0 || y0 + i >= height) continue;
      for (int64_t j = 0; j < 2; ++j) {
        if (x0 + j >= 0 && x0 + j < width) body((y0 + i) * width + x0 + j, i, j);
      }
    }
  }
  T Weight(int64_t i, int64_t j) const { return (i == 0 ? 1 - dy : dy) * (j == 0 ? 1 - dx : dx); }
};

template <typename T>
struct DeformableSamples {
  const ConvProblem& p;
  int64_t deformable_groups;
  const T* in;  // dense channels-last
  ImageView offset_view;
  const T* offset;
  ImageView mask_view;
  const T* mask;  // null: all ones

  int64_t positions() const { return p.window[0].kernel * p.window[1].kernel; }
  int64_t columns_size() const { return p.window[1].out * positions() * p.in_channels; }
  const T* Image(int64_t n) const {
    return in + n * p.window[0].in * p.window[1].in * p.in_channels;
  }

  static int64_t Index(const ImageView& view, int64_t n, int64_t c, int64_t y, int64_t x) {
    return n * view.strides[0] + c * view.strides[1] + y * view.strides[2] + x * view.strides[3];
  }

  // Position k of the window at output (y, x) of image n, for deformable group d.
  SamplePoint<T> Point(int64_t n, int64_t y, int64_t x, int64_t k, int64_t d) const {
    const WindowAxis& h = p.window[0];
    const WindowAxis& w = p.window[1];
    const int64_t at = d * positions() + k;
    return {static_cast<T>(y * h.stride - h.pad_begin + k / w.kernel * h.dilation) +
                offset[Index(offset_view, n, 2 * at, y, x)],
            static_cast<T>(x * w.stride - w.pad_begin + k % w.kernel * w.dilation) +
                offset[Index(offset_view, n, 2 * at + 1, y, x)],
            mask == nullptr ? T{1} : mask[Index(mask_view, n, at, y, x)]};
  }

  // Calls body(first channel, channels, place in columns) for the parts of deformable group d that
  // lie in one group of the convolution. Columns are [group, x, position, channel].
  template <typename Body>
  void ForChannels(int64_t x, int64_t k, int64_t d, const Body& body) const {
    const int64_t size = p.in_channels / deformable_groups;
    for (int64_t c = d * size; c < (d + 1) * size;) {
      const int64_t g = c / p.group_in();
      const int64_t stop = std::min((d + 1) * size, (g + 1) * p.group_in());
      body(c, stop - c,
           ((g * p.window[1].out + x) * positions() + k) * p.group_in() + c - g * p.group_in());
      c = stop;
    }
  }

  // Calls body(x, k, d) for all samples of a row.
  template <typename Body>
  void ForEachSample(const Body& body) const {
    for (int64_t x = 0; x < p.window[1].out; ++x) {
      for (int64_t k = 0; k < positions(); ++k) {
        for (int64_t d = 0; d < deformable_groups; ++d) body(x, k, d);
      }
    }
  }

  // Fills the columns of output row y of image n.
  void Gather(int64_t n, int64_t y, T* columns) const {
    const int64_t height = p.window[0].in;
    const int64_t width = p.window[1].in;
    ForEachSample([&](int64_t x, int64_t k, int64_t d) {
      const SamplePoint<T> point = Point(n, y, x, k, d);
      const SamplePixels<T> pixels(point.y, point.x, height, width);
      ForChannels(x, k, d, [&](int64_t first, int64_t count, int64_t place) {
        T* out = columns + place;
        std::fill_n(out, count, T{0});
        pixels.ForEach(height, width, [&](int64_t pixel, int64_t i, int64_t j) {
          const T weight = pixels.Weight(i, j) * point.factor;
          const T* from = Image(n) + pixel * p.in_channels + first;
          for (int64_t c = 0; c < count; ++c) out[c] += weight * from[c];
        });
      });
    });
  }
};

// The samples of a run of an op whose first inputs are those above. `in`: Input, dense
// channels-last.
template <typename T>
DeformableSamples<T> MakeDeformableSamples(const OpContext& ctx, const ConvProblem& problem,
                                           const T* in) {
  const Tensor& offset = ctx.input(kDeformableOffset);
  const Tensor* mask = ctx.optional_input(kDeformableMask);
  return {problem,
          ctx.attrs<DeformableAttrs>().deformable_groups,
          in,
          ViewImage(offset, false),
          offset.data<T>(),
          mask == nullptr ? ImageView() : ViewImage(*mask, false),
          DataOrNull<T>(mask)};
}

// The filter as one packed matrix per group: [group_out, kernel positions * group_in] where
// kByRows, else its transpose. May throw std::bad_alloc.
template <typename T, bool kByRows>
AlignedArray<T> PackDeformableFilter(const Tensor& filter, const ConvProblem& p) {
  const ImageView view = ViewImage(filter, /*channels_last_dims=*/false);
  std::vector<T> rows(static_cast<size_t>(filter.numel()));  // output channel, position, channel
  CopyImage(view, filter.data<T>(), DenseChannelsLast(view), rows.data(), /*num_threads=*/1);
  const int64_t depth = filter.shape.numel(1, 4);
  const int64_t k = kByRows ? p.group_out() : depth;
  const int64_t n = kByRows ? depth : p.group_out();
  const int64_t size = PackedSize<T>(k, n);
  AlignedArray<T> packed(size * p.groups);
  for (int64_t g = 0; g < p.groups; ++g) {
    PackMatrix(k, n, rows.data() + g * p.group_out() * depth, kByRows ? depth : int64_t{1},
               kByRows ? int64_t{1} : depth, packed.data() + g * size);
  }
  return packed;
}

}  // namespace interp::nn
