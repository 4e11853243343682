#include "kernels/tensor/resample.h"

#include <algorithm>
#include <cstring>

#include "kernels/util/parallel_for.h"
#include "kernels/util/unaligned.h"

namespace interp {
namespace {

// Rows of the output are dealt out in this many elements at least.
constexpr int64_t kRowGrain = 16 * 1024;

// One row: pixel i of `out` is pixel index[i] of `in`.
template <int kBytes>
void GatherPixels(const char* in, const int32_t* index, int64_t width, char* out) {
  using Pixel = typename UnalignedElement<kBytes>::Type;
  const Pixel* const from = reinterpret_cast<const Pixel*>(in);
  Pixel* const to = reinterpret_cast<Pixel*>(out);
  for (int64_t i = 0; i < width; ++i) to[i] = from[index[i]];
}

void NearestRow(const char* in, const int32_t* index, int64_t width, size_t pixel_bytes,
                char* out) {
  switch (pixel_bytes) {
    case 1:
      return GatherPixels<1>(in, index, width, out);
    case 2:
      return GatherPixels<2>(in, index, width, out);
    case 4:
      return GatherPixels<4>(in, index, width, out);
    case 8:
      return GatherPixels<8>(in, index, width, out);
    default:
      for (int64_t i = 0; i < width; ++i, out += pixel_bytes) {
        std::memcpy(out, in + index[i] * pixel_bytes, pixel_bytes);
      }
  }
}

}  // namespace

void ResampleNearest(int num_threads, const ImageView& view, const Taps<float> (&taps)[3],
                     size_t element_bytes, const void* in, void* out) {
  const size_t pixel_bytes = view.inner * element_bytes;
  const size_t in_row = view.in[2] * pixel_bytes;
  const size_t out_row = view.out[2] * pixel_bytes;
  const int64_t rows = view.outer * view.out[0] * view.out[1];
  const int64_t grain = GrainFor(view.out[2] * view.inner, kRowGrain);
  ParallelFor(num_threads, rows, grain, [&](int64_t begin, int64_t end) {
    int64_t previous = -1;
    for (int64_t r = begin; r < end; ++r) {
      const int64_t h = taps[1].index[r % view.out[1]];
      const int64_t d = taps[0].index[r / view.out[1] % view.out[0]];
      const int64_t image = r / (view.out[1] * view.out[0]);
      const int64_t source = (image * view.in[0] + d) * view.in[1] + h;
      char* const to = static_cast<char*>(out) + r * out_row;
      if (source == previous) {
        std::memcpy(to, to - out_row, out_row);  // enlarged: the row above is the same
      } else {
        NearestRow(static_cast<const char*>(in) + source * in_row, taps[2].index.data(),
                   view.out[2], pixel_bytes, to);
      }
      previous = source;
    }
  });
}

namespace {

// out = sum over the taps of weight * row, where rows[k] are input rows.
template <typename T, typename Weight>
void BlendRows(const T* const* rows, const Weight* weights, int count, int64_t length,
               Weight* out) {
  if (count == 0) {
    std::fill(out, out + length, Weight{0});
    return;
  }
  if (count == 2) {
    const T* const a = rows[0];
    const T* const b = rows[1];
    const Weight wa = weights[0];
    const Weight wb = weights[1];
    for (int64_t i = 0; i < length; ++i) {
      out[i] = static_cast<Weight>(a[i]) * wa + static_cast<Weight>(b[i]) * wb;
    }
    return;
  }
  for (int64_t i = 0; i < length; ++i) out[i] = static_cast<Weight>(rows[0][i]) * weights[0];
  for (int k = 1; k < count; ++k) {
    const T* const row = rows[k];
    const Weight weight = weights[k];
    for (int64_t i = 0; i < length; ++i) out[i] += static_cast<Weight>(row[i]) * weight;
  }
}

// Resamples one blended row along W, kTaps neighbours per pixel.
template <int kTaps, typename T, typename Weight>
void ResampleRow(const Weight* in, const Taps<Weight>& taps, int64_t width, int64_t inner, T* out) {
  const int32_t* const index = taps.index.data();
  const Weight* const weight = taps.weight.data();
  if (inner == 1) {
    for (int64_t i = 0; i < width; ++i) {
      Weight sum = 0;
      for (int k = 0; k < kTaps; ++k) sum += in[index[k * width + i]] * weight[k * width + i];
      out[i] = static_cast<T>(sum);
    }
    return;
  }
  for (int64_t i = 0; i < width; ++i, out += inner) {
    const Weight* pixel[kTaps];
    Weight w[kTaps];
    for (int k = 0; k < kTaps; ++k) {
      pixel[k] = in + index[k * width + i] * inner;
      w[k] = weight[k * width + i];
    }
    for (int64_t c = 0; c < inner; ++c) {
      Weight sum = 0;
      for (int k = 0; k < kTaps; ++k) sum += pixel[k][c] * w[k];
      out[c] = static_cast<T>(sum);
    }
  }
}

// The input rows that row (d, h) of an output image is blended from; those of weight 0 are left
// out.
template <typename T, typename Weight>
int FindRows(const ImageView& view, const Taps<Weight> (&taps)[3], const T* image, int64_t d,
             int64_t h, const T** rows, Weight* weights) {
  int count = 0;
  const int64_t row_length = view.in[2] * view.inner;
  for (int i = 0; i < taps[0].count; ++i) {
    for (int j = 0; j < taps[1].count; ++j) {
      const Weight weight =
          taps[0].weight[i * view.out[0] + d] * taps[1].weight[j * view.out[1] + h];
      if (weight == 0) continue;
      const int64_t row =
          taps[0].index[i * view.out[0] + d] * view.in[1] + taps[1].index[j * view.out[1] + h];
      rows[count] = image + row * row_length;
      weights[count++] = weight;
    }
  }
  return count;
}

template <typename T, typename Weight>
void BlendOutputRow(const ImageView& view, const Taps<Weight> (&taps)[3], const T* in, int64_t r,
                    Weight* blended, T* out) {
  constexpr int kMostRows = 16;
  const T* rows[kMostRows];
  Weight weights[kMostRows];
  const int64_t image = r / (view.out[1] * view.out[0]);
  const int64_t image_length = view.in[0] * view.in[1] * view.in[2] * view.inner;
  const int count = FindRows(view, taps, in + image * image_length, r / view.out[1] % view.out[0],
                             r % view.out[1], rows, weights);
  const Weight* row = blended;
  if constexpr (std::is_same_v<T, Weight>) {
    if (count == 1 && weights[0] == 1) row = rows[0];
  }
  if (row == blended) BlendRows(rows, weights, count, view.in[2] * view.inner, blended);
  T* const to = out + r * view.out[2] * view.inner;
  if (taps[2].count == 4) {
    ResampleRow<4>(row, taps[2], view.out[2], view.inner, to);
  } else {
    ResampleRow<2>(row, taps[2], view.out[2], view.inner, to);
  }
}

}  // namespace

template <typename T, typename Weight>
void ResampleBlend(int num_threads, const ImageView& view, const Taps<Weight> (&taps)[3],
                   const T* in, T* out, std::vector<Weight>& scratch) {
  const int64_t rows = view.outer * view.out[0] * view.out[1];
  const int64_t row_length = view.in[2] * view.inner;
  const int64_t row_cost = row_length + view.out[2] * view.inner;
  const int64_t tasks = std::clamp<int64_t>(rows * row_cost / kRowGrain, 1, num_threads);
  scratch.resize(tasks * row_length);
  ParallelFor(num_threads, tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      Weight* const blended = scratch.data() + t * row_length;
      for (int64_t r = rows * t / tasks; r < rows * (t + 1) / tasks; ++r) {
        BlendOutputRow(view, taps, in, r, blended, out);
      }
    }
  });
}

template void ResampleBlend(int, const ImageView&, const Taps<float> (&)[3], const float*, float*,
                            std::vector<float>&);
template void ResampleBlend(int, const ImageView&, const Taps<float> (&)[3], const float16*,
                            float16*, std::vector<float>&);
template void ResampleBlend(int, const ImageView&, const Taps<float> (&)[3], const uint8_t*,
                            uint8_t*, std::vector<float>&);
template void ResampleBlend(int, const ImageView&, const Taps<double> (&)[3], const double*,
                            double*, std::vector<double>&);

}  // namespace interp
