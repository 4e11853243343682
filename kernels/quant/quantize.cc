#include "kernels/quant/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

// Half away from zero. Adding the largest float below 0.5 and cutting off is std::round exactly,
// and unlike it a vector instruction.
inline float RoundHalfAway(float x) { return std::trunc(x + std::copysign(0x1.fffffep-2f, x)); }

inline float Inverse(float scale) {
  return scale <= 1e-30f ? 1.0f / (scale + 1e-6f) : 1.0f / scale;
}

template <bool kHalfEven>
inline float ToGrid(float x, float scale, float bins) {
  if constexpr (kHalfEven) {
    float q = std::nearbyint(bins * Inverse(scale) * x);
    q = q > bins ? bins : q;
    return q < -bins - 1 ? -bins - 1 : q;
  } else {
    const float low = x < -scale ? -scale : x;
    const float clipped = low > scale ? scale : low;
    return RoundHalfAway(bins * Inverse(scale) * clipped);
  }
}

template <bool kHalfEven, bool kBack>
inline float QuantizeOne(float x, float scale, float bins) {
  const float q = ToGrid<kHalfEven>(x, scale, bins);
  return kBack ? q * scale / bins : q;
}

// Calls body(begin, end) on ranges of the rows of `inner` elements; row r has channel r % channels.
template <typename Body>
void ForEachRow(int num_threads, const ChannelView& view, const Body& body) {
  const int64_t grain = 1 + kElementwiseGrain / std::max<int64_t>(view.inner, 1);
  ParallelFor(num_threads, view.outer * view.channels, grain, body);
}

// out[i] = one(x[i], scale of its channel). Where channels lie side by side, with channels last or
// in the columns of a matrix, rows go over all of them.
template <typename In, typename Out, typename One>
void ForEachElement(int num_threads, const ChannelView& view, const In* x, const Out* scales,
                    Out* out, const One& one) {
  if (view.outer * view.channels == 1) {
    const Out scale = scales[0];
    ParallelFor(num_threads, view.inner, kElementwiseGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = one(x[i], scale);
    });
    return;
  }
  if (view.inner == 1) {
    const int64_t grain = 1 + kElementwiseGrain / std::max<int64_t>(view.channels, 1);
    ParallelFor(num_threads, view.outer, grain, [=](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const In* const from = x + o * view.channels;
        Out* const to = out + o * view.channels;
        for (int64_t c = 0; c < view.channels; ++c) to[c] = one(from[c], scales[c]);
      }
    });
    return;
  }
  ForEachRow(num_threads, view, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Out scale = scales[r % view.channels];
      const In* const from = x + r * view.inner;
      Out* const to = out + r * view.inner;
      for (int64_t i = 0; i < view.inner; ++i) to[i] = one(from[i], scale);
    }
  });
}

template <bool kHalfEven, bool kBack>
void QuantizeAll(int num_threads, const ChannelView& view, float bins, const float* x,
                 const float* scales, float* out) {
  ForEachElement(num_threads, view, x, scales, out, [bins](float value, float scale) {
    return QuantizeOne<kHalfEven, kBack>(value, scale, bins);
  });
}

// Magnitudes are compared by their bits, which order like the values; integers, because a maximum
// of floats is not vectorised. NaN counts as the largest.
uint32_t RowMax(const float* x, int64_t count) {
  uint32_t max = 0;
  for (int64_t i = 0; i < count; ++i) {
    max = std::max(max, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  }
  return max;
}

// The largest magnitudes of channels that lie side by side; each thread has some of them.
void AbsMaxOfRows(int num_threads, const ChannelView& view, const float* x, float* max) {
  constexpr int64_t kLine = 16;  // channels
  const int64_t grain = std::max(kLine, kElementwiseGrain / std::max<int64_t>(view.outer, 1));
  ParallelFor(num_threads, view.channels, grain, [=](int64_t begin, int64_t end) {
    std::fill(max + begin, max + end, 0.0F);
    for (int64_t o = 0; o < view.outer; ++o) {
      const float* const row = x + o * view.channels;
      for (int64_t c = begin; c < end; ++c) {
        const uint32_t bits = std::bit_cast<uint32_t>(row[c]) & 0x7fffffffu;
        max[c] = std::bit_cast<float>(std::max(std::bit_cast<uint32_t>(max[c]), bits));
      }
    }
  });
}

template <bool kHalfEven>
void QuantizeRange(const float* x, int64_t count, float scale, float bins, int8_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    // Scales may be anything that a file can say.
    float value = ToGrid<kHalfEven>(x[i], scale, bins);
    value = value < bins ? value : bins;
    value = value > -128.0f ? value : -128.0f;
    out[i] = static_cast<int8_t>(static_cast<int32_t>(value));
  }
}

}  // namespace

ChannelView ViewChannels(const Tensor& tensor, int axis) {
  const Shape& shape = tensor.shape;
  if (axis < 0) return {.inner = tensor.numel()};
  ChannelView view = {.channels = shape[axis]};
  const bool channels_last = tensor.layout == Layout::kChannelsLast;
  const auto position = [&](int d) {  // in memory order
    return !channels_last || d == 0 ? d : (d == 1 ? shape.rank() - 1 : d - 1);
  };
  for (int d = 0; d < shape.rank(); ++d) {
    if (position(d) < position(axis)) view.outer *= shape[d];
    if (position(d) > position(axis)) view.inner *= shape[d];
  }
  return view;
}

QuantGrid ReadQuantGrid(AttrReader& reader, int default_round_type) {
  const int32_t bits = reader.Int("bit_length", 8);
  const int32_t round_type = reader.Int("round_type", default_round_type);
  if (bits < 1 || bits > 16) {
    reader.Fail(absl::StrCat("attribute 'bit_length' is ", bits, ", expected 1 to 16"));
    return QuantGrid();
  }
  if (round_type != 0 && round_type != 1) {
    reader.Fail(absl::StrCat("attribute 'round_type' is ", round_type, ", expected 0 or 1"));
  }
  return {.bins = BinsOf(bits), .round_half_even = round_type == 0};
}

void AbsMax(int num_threads, const ChannelView& view, const float* x, float* max) {
  if (view.inner == 1 && view.channels > 1) return AbsMaxOfRows(num_threads, view, x, max);
  ParallelFor(num_threads, view.channels, 1, [=](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      uint32_t bits = 0;
      for (int64_t o = 0; o < view.outer; ++o) {
        bits = std::max(bits, RowMax(x + (o * view.channels + c) * view.inner, view.inner));
      }
      max[c] = std::bit_cast<float>(bits);
    }
  });
}

void Quantize(int num_threads, const ChannelView& view, const QuantGrid& grid, const float* x,
              const float* scales, float* out) {
  const float bins = static_cast<float>(grid.bins);
  if (grid.round_half_even) {
    grid.dequantize ? QuantizeAll<true, true>(num_threads, view, bins, x, scales, out)
                    : QuantizeAll<true, false>(num_threads, view, bins, x, scales, out);
  } else {
    grid.dequantize ? QuantizeAll<false, true>(num_threads, view, bins, x, scales, out)
                    : QuantizeAll<false, false>(num_threads, view, bins, x, scales, out);
  }
}

void QuantizeToInt8(int num_threads, int64_t count, const QuantGrid& grid, const float* x,
                    float scale, int8_t* out) {
  const float bins = static_cast<float>(grid.bins);
  ParallelFor(num_threads, count, kElementwiseGrain, [=](int64_t begin, int64_t end) {
    const auto range = grid.round_half_even ? QuantizeRange<true> : QuantizeRange<false>;
    range(x + begin, end - begin, scale, bins, out + begin);
  });
}

template <typename In, typename T>
void Dequantize(int num_threads, const ChannelView& view, const In* x, const T* scales, T factor,
                T range, T* out) {
  ForEachElement(num_threads, view, x, scales, out, [factor, range](In value, T scale) {
    return static_cast<T>(value) * scale * factor / range;
  });
}

template void Dequantize(int, const ChannelView&, const float*, const float*, float, float, float*);
template void Dequantize(int, const ChannelView&, const int8_t*, const float*, float, float,
                         float*);
template void Dequantize(int, const ChannelView&, const double*, const double*, double, double,
                         double*);
template void Dequantize(int, const ChannelView&, const int8_t*, const double*, double, double,
                         double*);

MovingScale NextScale(float rate, float state, float accum, float current) {
  MovingScale next = {.state = rate * state + 1, .accum = rate * accum + current};
  next.scale = next.accum / next.state;
  return next;
}

}  // namespace interp
