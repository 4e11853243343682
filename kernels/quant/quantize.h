// Arithmetic of the quantisation ops: scales from absolute maxima, rounding to a grid, and back.
#pragma once

#include <cstdint>

#include "core/attr_reader.h"
#include "core/tensor.h"

namespace interp {

// A tensor in memory order as [outer][channels][inner]. Per-tensor quantisation is one channel.
struct ChannelView {
  int64_t outer = 1;
  int64_t channels = 1;
  int64_t inner = 1;
};
// `axis` is the logical dimension of the channels; -1: the whole tensor is one.
ChannelView ViewChannels(const Tensor& tensor, int axis);

// The grid: whole numbers from -bins (round_half_even: -bins - 1) to bins, which a scale maps to
// [-scale, scale].
struct QuantGrid {
  int64_t bins = 127;
  bool round_half_even = false;  // ties; else away from zero
  bool dequantize = false;       // results go back to the range of the input
};

// Reads `bit_length` and `round_type`, whose default differs between ops.
QuantGrid ReadQuantGrid(AttrReader& reader, int default_round_type);

// 2^(bits - 1) - 1. REQUIRES: 1 <= bits <= 32.
inline int64_t BinsOf(int64_t bits) { return (int64_t{1} << (bits - 1)) - 1; }

// The largest magnitude of each channel; 0 for an empty one.
void AbsMax(int num_threads, const ChannelView& view, const float* x, float* max);

// out[i] = x[i] on the grid, with the scale of its channel. May run in place.
void Quantize(int num_threads, const ChannelView& view, const QuantGrid& grid, const float* x,
              const float* scales, float* out);

// The same of one channel as int8. NaN becomes some number of the grid. REQUIRES: grid.bins <= 127
// and not grid.dequantize.
void QuantizeToInt8(int num_threads, int64_t count, const QuantGrid& grid, const float* x,
                    float scale, int8_t* out);

// out[i] = x[i] * scale of its channel [* factor] / range.
template <typename In, typename T>
void Dequantize(int num_threads, const ChannelView& view, const In* x, const T* scales, T factor,
                T range, T* out);

// One step of a moving average of scales: state = rate * state + 1, accum = rate * accum + current;
// the scale is accum / state.
struct MovingScale {
  float state = 0;
  float accum = 0;
  float scale = 0;
};
MovingScale NextScale(float rate, float state, float accum, float current);

}  // namespace interp
