#include <algorithm>

#include "kernels/tensor/resample.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

// in[index] += weight * out along W, pixels of `inner` elements.
template <typename T>
void SpreadRow(const T* out, const Taps<T>& taps, int64_t width, int64_t inner, T* in) {
  for (int k = 0; k < taps.count; ++k) {
    const int32_t* const index = taps.index.data() + k * width;
    const T* const weight = taps.weight.data() + k * width;
    for (int64_t i = 0; i < width; ++i) {
      T* const to = in + index[i] * inner;
      const T* const from = out + i * inner;
      for (int64_t c = 0; c < inner; ++c) to[c] += weight[i] * from[c];
    }
  }
}

// Row (d, h) of an output image. `spread` is scratch for an input row.
template <typename T>
void AddRow(const ImageView& view, const Taps<T> (&taps)[3], int64_t d, int64_t h, const T* out,
            T* spread, T* in) {
  const int64_t length = view.in[2] * view.inner;
  std::fill_n(spread, length, T{0});
  SpreadRow(out, taps[2], view.out[2], view.inner, spread);
  for (int i = 0; i < taps[0].count; ++i) {
    for (int j = 0; j < taps[1].count; ++j) {
      const T weight = taps[0].weight[i * view.out[0] + d] * taps[1].weight[j * view.out[1] + h];
      if (weight == 0) continue;
      const int64_t row =
          taps[0].index[i * view.out[0] + d] * view.in[1] + taps[1].index[j * view.out[1] + h];
      T* const to = in + row * length;
      for (int64_t x = 0; x < length; ++x) to[x] += weight * spread[x];
    }
  }
}

}  // namespace

template <typename T>
void ResampleGradient(int num_threads, const ImageView& view, const Taps<T> (&taps)[3],
                      const T* out_grad, T* in_grad, std::vector<T>& scratch) {
  const int64_t row = view.in[2] * view.inner;
  const int64_t in_image = view.in[0] * view.in[1] * row;
  const int64_t out_row = view.out[2] * view.inner;
  const int64_t out_rows = view.out[0] * view.out[1];
  scratch.resize(static_cast<size_t>(view.outer * row));
  const int64_t work = std::max<int64_t>(1, in_image + out_rows * (out_row + row));
  const int64_t grain = GrainFor(work);
  ParallelFor(num_threads, view.outer, grain, [&](int64_t begin, int64_t end) {
    T* const spread = scratch.data() + begin * row;
    for (int64_t image = begin; image < end; ++image) {
      T* const in = in_grad + image * in_image;
      std::fill_n(in, in_image, T{0});
      for (int64_t r = 0; r < out_rows; ++r) {
        AddRow(view, taps, r / view.out[1], r % view.out[1],
               out_grad + (image * out_rows + r) * out_row, spread, in);
      }
    }
  });
}

template void ResampleGradient(int, const ImageView&, const Taps<float> (&)[3], const float*,
                               float*, std::vector<float>&);
template void ResampleGradient(int, const ImageView&, const Taps<double> (&)[3], const double*,
                               double*, std::vector<double>&);

}  // namespace interp
