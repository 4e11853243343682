#include "kernels/conv/conv_grouped.h"

#include <algorithm>
#include <utility>

#include "kernels/product/gemm_tile.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

using Vector = VectorOf<float>::type;
using Unaligned = VectorOf<float>::unaligned;
constexpr int64_t kLanes = VectorOf<float>::kLanes;
// Of a tile: with a vector of channels each, and a factor, they fill the registers.
constexpr int kMostPixels = kVectorBytes == 64 ? 24 : 12;
// Taps of a kernel row that share their inputs, and the fewest pixels of a tile that gain by it.
constexpr int kSharedTaps = 3;
constexpr int kFewestShared = 4;

inline Vector Load(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
inline void Store(Vector value, float* to) { *reinterpret_cast<Unaligned*>(to) = value; }

// In each lane what the kAt-th lane of its group of kGroup lanes holds.
template <int kGroup, int kAt, int... kLane>
Vector WithinGroups(Vector v, std::integer_sequence<int, kLane...> /*lanes*/) {
  return __builtin_shufflevector(v, v, (kLane / kGroup * kGroup + kAt)...);
}

// Where the kernel rows and columns that lie within the image begin and end.
struct Taps {
  int64_t begin;
  int64_t end;
};
Taps TapsWithin(const WindowAxis& axis, int64_t output) {
  const int64_t at = output * axis.stride - axis.pad_begin;
  const auto first_from = [&](int64_t input) {  // the first tap at `input` or behind
    const int64_t distance = std::max<int64_t>(input - at, 0);
    return std::min((distance + axis.dilation - 1) / axis.dilation, axis.kernel);
  };
  return {first_from(0), first_from(axis.in)};
}

// A tile: the pixels from column `x` of an output row on, and their taps that lie in the image.
struct TilePlace {
  int64_t x;
  Taps rows;
  Taps columns;
};

class Image {
 public:
  Image(const ConvProblem& problem, const ConvEpilogue& epilogue, const float* packed,
        const float* bias, const float* in, float* out)
      : p_(problem),
        epilogue_(epilogue),
        packed_(packed),
        bias_(bias),
        in_(in),
        out_(out),
        channels_(problem.in_channels),
        group_(problem.group_in()) {
    const WindowAxis& w = p_.window[1];
    inner_begin_ = std::clamp<int64_t>((w.pad_begin + w.stride - 1) / w.stride, 0, w.out);
    const int64_t room = w.in - w.extent() + w.pad_begin;
    inner_end_ = std::clamp(room < 0 ? 0 : room / w.stride + 1, inner_begin_, w.out);
    shares_ = w.kernel == kSharedTaps && w.stride == 1 && w.dilation == 1;
  }

  // Output rows [first, last).
  void Run(int64_t first, int64_t last) const {
    const int64_t row_floats = p_.window[1].out * channels_;
    const int64_t vectors = channels_ / kLanes;
    const int64_t step = VectorsAtOnce(vectors);
    for (int64_t v = 0; v < vectors; v += step) {
      const int64_t end = std::min(v + step, vectors);
      for (int64_t y = first; y < last; ++y) {
        Row(y, v, end);
        if (end < vectors) continue;
        ApplyActivation(epilogue_.activation, out_ + y * row_floats, row_floats);
        ApplyAffine(epilogue_.affine, out_ + y * row_floats, row_floats);
      }
    }
  }

 private:
  int64_t FilterOfVector() const {
    return p_.window[0].kernel * p_.window[1].kernel * group_ * kLanes;
  }

  // Vectors of channels that go through the image together: those whose filter stays in the L2
  // cache.
  int64_t VectorsAtOnce(int64_t vectors) const {
    constexpr int64_t kFilterBytes = int64_t{128} << 10;
    const int64_t bytes = FilterOfVector() * int64_t{sizeof(float)};
    return std::clamp<int64_t>(kFilterBytes / bytes, 1, vectors);
  }

  void Row(int64_t y, int64_t v, int64_t end) const {
    const Taps rows = TapsWithin(p_.window[0], y);
    const WindowAxis& w = p_.window[1];
    const auto edge = [&](int64_t x) { Tiles<1>({x, rows, TapsWithin(w, x)}, y, v, end); };
    int64_t x = 0;
    for (; x < inner_begin_; ++x) edge(x);
    const Taps all = {0, w.kernel};
    for (; x + kMostPixels <= inner_end_; x += kMostPixels) {
      Tiles<kMostPixels>({x, rows, all}, y, v, end);
    }
    if (x < inner_end_) {
      gemm_internal::WithCount<kMostPixels>(inner_end_ - x, [&]<int kPixels>() {
        Tiles<kPixels>({x, rows, all}, y, v, end);
      });
      x = inner_end_;
    }
    for (; x < w.out; ++x) edge(x);
  }

  // All vectors of channels from `v` to `end`.
  template <int kPixels>
  void Tiles(const TilePlace& at, int64_t y, int64_t v, int64_t end) const {
    for (; v < end; ++v) {
      if (group_ == 2) {
        Tile<kPixels, 2>(at, y, v);
      } else if (group_ == 4) {
        Tile<kPixels, 4>(at, y, v);
      } else {
        Tile<kPixels, 8>(at, y, v);
      }
    }
  }

  template <int kPixels, int kGroup>
  void Tile(const TilePlace& at, int64_t y, int64_t v) const {
    const WindowAxis& h = p_.window[0];
    const WindowAxis& w = p_.window[1];
    const int64_t channels = channels_;  // stores might change the member
    float* const out = out_ + (y * w.out + at.x) * channels + v * kLanes;
    const Vector bias = bias_ == nullptr ? Vector{} : Load(bias_ + v * kLanes);
    Vector sums[kPixels];
#pragma GCC unroll 24
    for (int i = 0; i < kPixels; ++i) {
      sums[i] = epilogue_.residual ? bias + Load(out + i * channels) : bias;
    }
    const int64_t step = w.stride * channels;
    for (int64_t ky = at.rows.begin; ky < at.rows.end; ++ky) {
      const int64_t row = y * h.stride - h.pad_begin + ky * h.dilation;
      if constexpr (kPixels >= kFewestShared) {
        if (shares_ && at.columns.begin == 0 && at.columns.end == kSharedTaps) {
          const float* const inputs =
              in_ + (row * w.in + at.x - w.pad_begin) * channels + v * kLanes;
          const float* const filter =
              packed_ + v * FilterOfVector() + ky * kSharedTaps * kGroup * kLanes;
          AddRow<kGroup>(inputs, step, filter, sums, std::make_integer_sequence<int, kGroup>());
          continue;
        }
      }
      for (int64_t kx = at.columns.begin; kx < at.columns.end; ++kx) {
        const int64_t column = at.x * w.stride - w.pad_begin + kx * w.dilation;
        const float* const inputs = in_ + (row * w.in + column) * channels + v * kLanes;
        const float* const filter =
            packed_ + v * FilterOfVector() + (ky * w.kernel + kx) * kGroup * kLanes;
        AddTap<kGroup>(inputs, step, filter, sums, std::make_integer_sequence<int, kGroup>());
      }
    }
#pragma GCC unroll 24
    for (int i = 0; i < kPixels; ++i) Store(sums[i], out + i * channels);
  }

  // Adds what a tap gives: in each lane the sum over the channels of its group.
  template <int kGroup, int kPixels, int... kAt>
  static void AddTap(const float* inputs, int64_t step, const float* filter,
                     Vector (&sums)[kPixels], std::integer_sequence<int, kAt...> /*channels*/) {
    (AddChannel<kGroup, kAt>(inputs, step, Load(filter + kAt * kLanes), sums), ...);
  }

  template <int kGroup, int kAt, int kPixels>
  static void AddChannel(const float* inputs, int64_t step, Vector factors,
                         Vector (&sums)[kPixels]) {
    constexpr auto kAll = std::make_integer_sequence<int, kLanes>();
#pragma GCC unroll 24
    for (int i = 0; i < kPixels; ++i) {
      sums[i] += WithinGroups<kGroup, kAt>(Load(inputs + i * step), kAll) * factors;
    }
  }

  // Adds what the taps of a kernel row give, three beside each other: each input is brought to its
  // lanes once for all of them.
  template <int kGroup, int kPixels, int... kAt>
  static void AddRow(const float* inputs, int64_t step, const float* filter,
                     Vector (&sums)[kPixels], std::integer_sequence<int, kAt...> /*channels*/) {
    (AddRowChannel<kGroup, kAt>(inputs, step, filter + kAt * kLanes, sums), ...);
  }

  template <int kGroup, int kAt, int kPixels>
  static void AddRowChannel(const float* inputs, int64_t step, const float* filter,
                            Vector (&sums)[kPixels]) {
    constexpr auto kAll = std::make_integer_sequence<int, kLanes>();
    constexpr int kInputs = kPixels + kSharedTaps - 1;
    const Vector factors[kSharedTaps] = {Load(filter), Load(filter + kGroup * kLanes),
                                         Load(filter + 2 * kGroup * kLanes)};
#pragma GCC unroll 26
    for (int i = 0; i < kInputs; ++i) {
      const Vector input = WithinGroups<kGroup, kAt>(Load(inputs + i * step), kAll);
      if (i < kPixels) sums[i] += input * factors[0];
      if (i >= 1 && i <= kPixels) sums[i - 1] += input * factors[1];
      if (i >= 2) sums[i - 2] += input * factors[2];
    }
  }

  const ConvProblem& p_;
  const ConvEpilogue& epilogue_;
  const float* const packed_;
  const float* const bias_;
  const float* const in_;
  float* const out_;
  const int64_t channels_;
  const int64_t group_;
  int64_t inner_begin_;  // output columns whose windows lie within the row
  int64_t inner_end_;
  bool shares_;  // taps beside each other are those of pixels beside each other
};

bool ConvGroupedPays(const ConvProblem& p) {
  const int64_t group = p.group_in();
  return p.window.rank == 2 && p.in_channels == p.out_channels && p.in_channels % kLanes == 0 &&
         (group == 2 || group == 4 || group == 8) && group < kLanes;
}

int64_t ConvGroupedFilterSize(const ConvProblem& p) {
  return p.out_channels * p.group_in() * p.window[0].kernel * p.window[1].kernel;
}

void PackConvGroupedFilter(const ConvProblem& p, const ScaledFilter& filter, float* packed) {
  const int64_t taps = p.window[0].kernel * p.window[1].kernel;
  const int64_t group = p.group_in();
  const float* from = filter.data;
  for (int64_t o = 0; o < p.out_channels; ++o) {
    float* const vector = packed + o / kLanes * taps * group * kLanes + o % kLanes;
    for (int64_t i = 0; i < group; ++i) {
      for (int64_t t = 0; t < taps; ++t) {
        vector[(t * group + i) * kLanes] = filter.Scaled(*from++, o);
      }
    }
  }
}

void RunConvGrouped(const ConvProblem& problem, const ConvEpilogue& epilogue, const float* packed,
                    const float* bias, const float* in, float* out, int num_threads,
                    float* /*work*/) {
  const WindowAxis& h = problem.window[0];
  const WindowAxis& w = problem.window[1];
  ParallelForImageRows(num_threads, problem.batch, h.out,
                       [&](int64_t image, int64_t first, int64_t last) {
                         const Image rows(problem, epilogue, packed, bias,
                                          in + image * h.in * w.in * problem.in_channels,
                                          out + image * h.out * w.out * problem.out_channels);
                         rows.Run(first, last);
                       });
}

}  // namespace

constexpr ConvMethod kConvGrouped = {
    .name = "groups in vectors",
    .key = 6,
    .pays = ConvGroupedPays,
    .filter_size = ConvGroupedFilterSize,
    .pack = PackConvGroupedFilter,
    .run = RunConvGrouped,
};

}  // namespace interp::nn
