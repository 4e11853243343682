#include "kernels/conv/conv_spread_depthwise.h"

#include <algorithm>

#include "kernels/product/gemm_tile.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

using Lanes = VectorOf<float>::unaligned;
constexpr int64_t kLanes = VectorOf<float>::kLanes;

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

// Taps [begin, end) of an axis, none of which an output meets in the padding.
struct TapRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const TapRange&) const = default;
};

TapRange TapsOf(const WindowAxis& axis, int64_t out) {
  const int64_t first = out * axis.stride - axis.pad_begin;  // where the window begins
  const int64_t begin = first < 0 ? (axis.dilation - 1 - first) / axis.dilation : 0;
  const int64_t end = axis.in > first ? (axis.in - 1 - first) / axis.dilation + 1 : 0;
  TapRange taps;
  taps.begin = std::min(begin, axis.kernel);
  taps.end = std::clamp(end, taps.begin, axis.kernel);
  return taps;
}

// Adds the sums of a row of outputs to it. Those side by side that meet the same taps are made
// together, so that each factor is loaded once for them.
class SpreadRow {
 public:
  // `in` is the image, `out` row `y` of the output.
  SpreadRow(const ConvProblem& p, const float* packed, const float* in, int64_t y, float* out)
      : h_(p.window[0]),
        w_(p.window[1]),
        channels_(p.in_channels),
        rows_(TapsOf(h_, y)),
        packed_(packed),
        first_row_(y * h_.stride - h_.pad_begin),
        in_(in),
        out_(out) {}

  void Run() const {
    for (int64_t x = 0; x < w_.out;) {
      const TapRange taps = TapsOf(w_, x);
      int64_t end = x + 1;
      while (end < w_.out && TapsOf(w_, end) == taps) ++end;
      AddAlike(taps, x, end);
      x = end;
    }
  }

 private:
  void AddAlike(const TapRange& taps, int64_t x, int64_t end) const {
    for (; x + 8 <= end; x += 8) AddPixels<8, 1>(taps, x);
    for (; x + 4 <= end; x += 4) AddPixels<4, 2>(taps, x);
    for (; x + 2 <= end; x += 2) AddPixels<2, 4>(taps, x);
    for (; x < end; ++x) AddPixels<1, 4>(taps, x);
  }

  // kPixels outputs from `x` on, kVectors of their channels in registers at once.
  template <int kPixels, int kVectors>
  void AddPixels(const TapRange& taps, int64_t x) const {
    int64_t c = 0;
    for (; c + kVectors * kLanes <= channels_; c += kVectors * kLanes) {
      AddVectors<kPixels, kVectors>(taps, x, c);
    }
    for (; c + kLanes <= channels_; c += kLanes) AddVectors<kPixels, 1>(taps, x, c);
    for (; c < channels_; ++c) {
      for (int i = 0; i < kPixels; ++i) AddChannel(taps, x + i, c);
    }
  }

  // The channels that a tap of output `x` meets.
  const float* InputOf(int64_t tap_row, int64_t x, int64_t tap) const {
    const int64_t in_x = x * w_.stride + tap * w_.dilation - w_.pad_begin;
    const int64_t in_y = first_row_ + tap_row * h_.dilation;
    return in_ + (in_y * w_.in + in_x) * channels_;
  }

  template <int kPixels, int kVectors>
  void AddVectors(const TapRange& taps, int64_t x, int64_t c) const {
    const int64_t step = w_.stride * channels_;  // to the next output's
    const int64_t tap_step = w_.dilation * channels_;
    float* const out = out_ + x * channels_ + c;
    Lanes sums[kPixels][kVectors];
    for (int i = 0; i < kPixels; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        sums[i][v] = *reinterpret_cast<Lanes*>(out + i * channels_ + v * kLanes);
      }
    }
    for (int64_t ky = rows_.begin; ky < rows_.end; ++ky) {
      const float* in = InputOf(ky, x, taps.begin) + c;
      const float* factor = packed_ + (ky * w_.kernel + taps.begin) * channels_ + c;
      for (int64_t kx = taps.begin; kx < taps.end; ++kx, in += tap_step, factor += channels_) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          const Lanes f = *reinterpret_cast<const Lanes*>(factor + v * kLanes);
#pragma GCC unroll 8
          for (int i = 0; i < kPixels; ++i) {
            sums[i][v] += *reinterpret_cast<const Lanes*>(in + i * step + v * kLanes) * f;
          }
        }
      }
    }
    for (int i = 0; i < kPixels; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        *reinterpret_cast<Lanes*>(out + i * channels_ + v * kLanes) = sums[i][v];
      }
    }
  }

  void AddChannel(const TapRange& taps, int64_t x, int64_t c) const {
    float sum = out_[x * channels_ + c];
    for (int64_t ky = rows_.begin; ky < rows_.end; ++ky) {
      for (int64_t kx = taps.begin; kx < taps.end; ++kx) {
        sum += InputOf(ky, x, kx)[c] * packed_[(ky * w_.kernel + kx) * channels_ + c];
      }
    }
    out_[x * channels_ + c] = sum;
  }

  const WindowAxis h_;
  const WindowAxis w_;
  const int64_t channels_;
  const TapRange rows_;
  const float* const packed_;
  const int64_t first_row_;  // of the windows, which may be padding
  const float* const in_;
  float* const out_;
};

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
          SpreadRow(p, packed, in + image * in_size, y, to + y * row_pixels * p.in_channels).Run();
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
