#include "kernels/conv/depthwise_rows.h"

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/product/gemm_tile.h"

namespace interp::nn {
namespace {

using Vector = VectorOf<float>::type;
using Unaligned = VectorOf<float>::unaligned;
constexpr int64_t kLanes = VectorOf<float>::kLanes;
constexpr int kMostTaps = 5;  // along an axis
constexpr int kOutputs = 8;   // in registers at once

inline Vector Load(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
inline void Store(Vector value, float* to) { *reinterpret_cast<Unaligned*>(to) = value; }

// What is done to sums in registers: they are clamped or, with kGated, multiplied by what is
// clamped (hard_swish). Other activations take a pass over the rows.
template <bool kGated>
struct Finisher {
  Vector operator()(Vector x) const {
    const Vector y = kGated ? a * x + b : x;
    const Vector clamped = y < low ? low : (y > high ? high : y);
    return kGated ? x * clamped : clamped;
  }

  Vector low;
  Vector high;
  float a = 0;
  float b = 0;
};

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool InRegisters(const ConvEpilogue& epilogue) {
  const ActivationKind kind = epilogue.activation.kind;
  return epilogue.affine.is_identity() &&
         (kind == ActivationKind::kNone || kind == ActivationKind::kRelu ||
          kind == ActivationKind::kRelu6 || kind == ActivationKind::kHardSwish);
}

Finisher<false> Clamps(const ConvEpilogue& epilogue) {
  const ActivationKind kind =
      InRegisters(epilogue) ? epilogue.activation.kind : ActivationKind::kNone;
  const float high = kind == ActivationKind::kRelu6 ? epilogue.activation.alpha : kInfinity;
  return {Vector{} + (kind == ActivationKind::kNone ? -kInfinity : 0), Vector{} + high};
}

// The rows of the input that a window reaches, from the first that is no padding.
struct InputRows {
  std::array<const float*, kMostTaps> rows;
  int64_t count = 0;
  int64_t first_tap = 0;  // of the window's rows
};

// One row of outputs. kTaps along an axis. Copies lie on the stack of the caller, where stores of
// outputs cannot change them.
template <int kTaps, int kStride, typename Finish>
class OutputRow {
 public:
  OutputRow(const ConvProblem& p, const DepthwiseWeights& weights, const Finish& finish)
      : axis_(p.window[1]), channels_(p.in_channels), weights_(weights), finish_(finish) {
    const int64_t before = std::max<int64_t>(axis_.pad_begin, 0);
    inner_begin_ = std::min((before + kStride - 1) / kStride, axis_.out);
    const int64_t room = axis_.in - kTaps + axis_.pad_begin;
    inner_end_ = room < 0 ? 0 : room / kStride + 1;
    inner_end_ = std::clamp(inner_end_, inner_begin_, axis_.out);
  }

  // Channels from vector `begin` to vector `end`; the last may overlap the one before.
  void Run(const InputRows& in, int64_t begin, int64_t end, float* out) const {
    int64_t x = 0;
    for (; x < inner_begin_; ++x) Edge(in, x, begin, end, out);
    for (; x + kOutputs <= inner_end_; x += kOutputs) Tiles<kOutputs>(in, x, begin, end, out);
    for (; x + kOutputs / 2 <= inner_end_; x += kOutputs / 2) {
      Tiles<kOutputs / 2>(in, x, begin, end, out);
    }
    for (; x < inner_end_; ++x) Tiles<1>(in, x, begin, end, out);
    for (; x < axis_.out; ++x) Edge(in, x, begin, end, out);
  }

 private:
  int64_t ChannelOf(int64_t vector) const { return std::min(vector * kLanes, channels_ - kLanes); }

  template <int kCount>
  void Tiles(const InputRows& in, int64_t x, int64_t begin, int64_t end, float* out) const {
    for (int64_t v = begin; v < end; ++v) Tile<kCount>(in, x, ChannelOf(v), out);
  }

  // kCount outputs from `x` on whose windows lie within the row.
  template <int kCount>
  void Tile(const InputRows& in, int64_t x, int64_t channel, float* out) const {
    const int64_t channels = channels_;  // stores might change the member
    const Finish finish = finish_;
    const int64_t from = (x * kStride - axis_.pad_begin) * channels + channel;
    const Vector bias = Load(weights_.bias + channel);
    Vector sums[kCount];
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) sums[i] = bias;
    const float* tap = weights_.taps + in.first_tap * kTaps * channels + channel;
    for (int64_t row = 0; row < in.count; ++row, tap += kTaps * channels) {
      const float* const inputs = in.rows[row] + from;
      Vector taps[kTaps];
#pragma GCC unroll 8
      for (int j = 0; j < kTaps; ++j) taps[j] = Load(tap + j * channels);
#pragma GCC unroll 32
      for (int j = 0; j < (kCount - 1) * kStride + kTaps; ++j) {
        const Vector value = Load(inputs + j * channels);
#pragma GCC unroll 8
        for (int i = 0; i < kCount; ++i) {
          const int position = j - i * kStride;
          if (position >= 0 && position < kTaps) sums[i] += value * taps[position];
        }
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      Store(finish(sums[i]), out + (x + i) * channels + channel);
      // Lines of `out` that are taken in this order no prefetcher foresees.
      __builtin_prefetch(out + (x + i + kCount) * channels + channel, /*rw=*/1);
    }
  }

  // An output whose window reaches into the padding.
  void Edge(const InputRows& in, int64_t x, int64_t begin, int64_t end, float* out) const {
    const int64_t first = x * kStride - axis_.pad_begin;
    const int64_t low = std::max<int64_t>(-first, 0);
    const int64_t high = std::min<int64_t>(kTaps, axis_.in - first);
    for (int64_t v = begin; v < end; ++v) {
      const int64_t channel = ChannelOf(v);
      Vector sum = Load(weights_.bias + channel);
      const float* tap = weights_.taps + in.first_tap * kTaps * channels_ + channel;
      for (int64_t row = 0; row < in.count; ++row, tap += kTaps * channels_) {
        for (int64_t j = low; j < high; ++j) {
          sum += Load(in.rows[row] + (first + j) * channels_ + channel) * Load(tap + j * channels_);
        }
      }
      Store(finish_(sum), out + x * channels_ + channel);
    }
  }

  const WindowAxis axis_;
  const int64_t channels_;
  const DepthwiseWeights weights_;
  const Finish finish_;
  int64_t inner_begin_ = 0;  // outputs whose windows lie within the row
  int64_t inner_end_ = 0;
};

InputRows RowsOf(const ConvProblem& p, const RowRing& in, int64_t y) {
  const WindowAxis& axis = p.window[0];
  const int64_t row_size = p.window[1].in * p.in_channels;
  const int64_t first = y * axis.stride - axis.pad_begin;
  InputRows found;
  found.first_tap = std::clamp<int64_t>(-first, 0, axis.kernel);
  for (int64_t tap = found.first_tap; tap < axis.kernel && first + tap < axis.in; ++tap) {
    found.rows[found.count++] = in.data + (first + tap - in.first) % in.ring * row_size;
  }
  return found;
}

// Vectors of channels that are taken together: all, as they lie, where their taps leave room for
// images in the L1 cache.
int64_t VectorsAtOnce(const ConvProblem& p, int64_t vectors) {
  constexpr int64_t kSmallBytes = 16 << 10;
  constexpr int64_t kFew = 4;  // a few lines, for the prefetcher
  const int64_t taps = p.window[0].kernel * p.window[1].kernel;
  const int64_t bytes = taps * p.in_channels * int64_t{sizeof(float)};
  return bytes <= kSmallBytes ? vectors : kFew;
}

// What all rows have in common.
struct Rows {
  const ConvProblem& problem;
  const DepthwiseWeights& weights;
  const RowRing& in;
  int64_t first;
  int64_t last;
  float* out;

  template <int kTaps, int kStride, typename Finish>
  void Run(const Finish& finish) const {
    const OutputRow<kTaps, kStride, Finish> row(problem, weights, finish);
    const int64_t row_size = problem.window[1].out * problem.in_channels;
    const int64_t vectors = (problem.in_channels + kLanes - 1) / kLanes;
    const int64_t step = VectorsAtOnce(problem, vectors);
    for (int64_t v = 0; v < vectors; v += step) {
      for (int64_t y = first; y < last; ++y) {
        row.Run(RowsOf(problem, in, y), v, std::min(v + step, vectors),
                out + (y - first) * row_size);
      }
    }
  }

  template <typename Finish>
  void Run(const Finish& finish) const {
    const bool single = problem.window[0].stride == 1;
    if (problem.window[0].kernel == 3) {
      single ? Run<3, 1>(finish) : Run<3, 2>(finish);
    } else {
      single ? Run<5, 1>(finish) : Run<5, 2>(finish);
    }
  }
};

}  // namespace

bool DepthwiseRowsTakes(const ConvProblem& p) {
  if (p.window.rank != 2 || !p.depthwise() || p.out_channels != p.in_channels) return false;
  if (p.in_channels < kLanes) return false;
  const WindowAxis& rows = p.window[0];
  const WindowAxis& columns = p.window[1];
  const auto takes = [](const WindowAxis& axis) {
    return (axis.kernel == 3 || axis.kernel == 5) && (axis.stride == 1 || axis.stride == 2) &&
           axis.dilation == 1;
  };
  return takes(rows) && takes(columns) && rows.kernel == columns.kernel &&
         rows.stride == columns.stride;
}

void PackTaps(const ConvProblem& p, const float* filter, float* taps) {
  const int64_t positions = p.window[0].kernel * p.window[1].kernel;
  for (int64_t c = 0; c < p.in_channels; ++c) {
    for (int64_t i = 0; i < positions; ++i) {
      taps[i * p.in_channels + c] = filter[c * positions + i];
    }
  }
}

void DepthwiseRows(const ConvProblem& p, const ConvEpilogue& epilogue,
                   const DepthwiseWeights& weights, const RowRing& in, int64_t first, int64_t last,
                   float* out) {
  const Rows rows = {p, weights, in, first, last, out};
  const FusedActivation& activation = epilogue.activation;
  if (InRegisters(epilogue) && activation.kind == ActivationKind::kHardSwish) {
    return rows.Run(Finisher<true>{Vector{}, Vector{} + 1, activation.alpha, activation.beta});
  }
  rows.Run(Clamps(epilogue));
  if (InRegisters(epilogue)) return;
  const int64_t count = (last - first) * p.window[1].out * p.in_channels;
  ApplyActivation(activation, out, count);
  ApplyAffine(epilogue.affine, out, count);
}

}  // namespace interp::nn
