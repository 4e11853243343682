#include "kernels/nn/conv_spread_depthwise.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "kernels/nn/gemm_tile.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

using Lanes = VectorOf<float>::unaligned;
constexpr int64_t kLanes = VectorOf<float>::kLanes;
constexpr int kVectors = 4;  // of channels, in registers at once

bool Takes(const ConvProblem& p) {
  return p.window.rank == 2 && p.depthwise() && p.out_channels == p.in_channels;
}

// oneDNN's depthwise kernels take windows with holes where the padding of a row fits the outputs
// that they have in registers (jit_uni_dw_conv_fwd_kernel, ur_w), and are faster there.
bool ConvSpreadDepthwisePays(const ConvProblem& p) {
  constexpr int64_t kOutputs = kVectorBytes == 64 ? 6 : kVectorBytes == 32 ? 4 : 3;
  if (!Takes(p) || p.in_channels < kLanes) return false;
  const WindowAxis& columns = p.window[1];
  return columns.kernel > 1 && columns.dilation > 1 &&
         std::max(columns.pad_begin, columns.pad_end) > kOutputs;
}

int64_t ConvSpreadDepthwiseFilterSize(const ConvProblem& p) {
  return p.in_channels * p.window[0].kernel * p.window[1].kernel;
}

// By position in the window, then by channel.
void PackConvSpreadDepthwiseFilter(const ConvProblem& p, const ScaledFilter& filter,
                                   float* packed) {
  const int64_t taps = p.window[0].kernel * p.window[1].kernel;
  for (int64_t c = 0; c < p.in_channels; ++c) {
    for (int64_t t = 0; t < taps; ++t) {
      packed[t * p.in_channels + c] = filter.Scaled(filter.data[c * taps + t], c);
    }
  }
}

// A tap whose input is no padding: where the channels of both begin.
struct Tap {
  const float* in;
  const float* factor;
};

// Adds the sums of kCount vectors of channels from `c` on to those of an output pixel.
template <int kCount>
void AddVectors(absl::Span<const Tap> taps, int64_t c, float* out) {
  Lanes sums[kCount];
  for (int v = 0; v < kCount; ++v) sums[v] = *reinterpret_cast<Lanes*>(out + c + v * kLanes);
  for (const Tap& tap : taps) {
    for (int v = 0; v < kCount; ++v) {
      sums[v] += *reinterpret_cast<const Lanes*>(tap.in + c + v * kLanes) *
                 *reinterpret_cast<const Lanes*>(tap.factor + c + v * kLanes);
    }
  }
  for (int v = 0; v < kCount; ++v) *reinterpret_cast<Lanes*>(out + c + v * kLanes) = sums[v];
}

void AddPixel(absl::Span<const Tap> taps, int64_t channels, float* out) {
  int64_t c = 0;
  for (; c + kVectors * kLanes <= channels; c += kVectors * kLanes) {
    AddVectors<kVectors>(taps, c, out);
  }
  for (; c + kLanes <= channels; c += kLanes) AddVectors<1>(taps, c, out);
  for (; c < channels; ++c) {
    for (const Tap& tap : taps) out[c] += tap.in[c] * tap.factor[c];
  }
}

// Adds the sums of output row `y` to `out`, the row. `in` is the image.
void AddRow(const ConvProblem& p, const float* packed, const float* in, int64_t y, float* out) {
  const WindowAxis& h = p.window[0];
  const WindowAxis& w = p.window[1];
  const int64_t channels = p.in_channels;
  absl::InlinedVector<Tap, 25> taps;
  for (int64_t x = 0; x < w.out; ++x) {
    taps.clear();
    for (int64_t ky = 0; ky < h.kernel; ++ky) {
      const int64_t in_y = y * h.stride + ky * h.dilation - h.pad_begin;
      if (in_y < 0 || in_y >= h.in) continue;
      for (int64_t kx = 0; kx < w.kernel; ++kx) {
        const int64_t in_x = x * w.stride + kx * w.dilation - w.pad_begin;
        if (in_x < 0 || in_x >= w.in) continue;
        taps.push_back({.in = in + (in_y * w.in + in_x) * channels,
                        .factor = packed + (ky * w.kernel + kx) * channels});
      }
    }
    AddPixel(taps, channels, out + x * channels);
  }
}

void RunConvSpreadDepthwise(const ConvProblem& p, const ConvEpilogue& epilogue, const float* packed,
                            const float* bias, const float* in, float* out, int num_threads,
                            float* /*work*/) {
  const int64_t out_rows = p.window[0].out;
  const int64_t row_pixels = p.window[1].out;
  const int64_t in_size = p.window[0].in * p.window[1].in * p.in_channels;
  ParallelForImageRows(
      num_threads, p.batch, out_rows, [&](int64_t image, int64_t first, int64_t last) {
        float* const to = out + image * out_rows * row_pixels * p.in_channels;
        float* const part = to + first * row_pixels * p.in_channels;
        const int64_t pixels = (last - first) * row_pixels;
        BeginSums(epilogue, bias, pixels, p.in_channels, part);
        for (int64_t y = first; y < last; ++y) {
          AddRow(p, packed, in + image * in_size, y, to + y * row_pixels * p.in_channels);
        }
        ApplyActivation(epilogue.activation, part, pixels * p.in_channels);
        ApplyAffine(epilogue.affine, part, pixels * p.in_channels);
      });
}

}  // namespace

constexpr ConvMethod kConvSpreadDepthwise = {
    .name = "depthwise by tap",
    .key = 7,
    .pays = ConvSpreadDepthwisePays,
    .filter_size = ConvSpreadDepthwiseFilterSize,
    .pack = PackConvSpreadDepthwiseFilter,
    .run = RunConvSpreadDepthwise,
};

}  // namespace interp::nn
