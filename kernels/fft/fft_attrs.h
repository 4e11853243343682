// The attributes of fft_c2c, fft_r2c and fft_c2r, and of their gradients.
#pragma once

#include <string>
#include <vector>

#include "core/op_def.h"
#include "kernels/util/shape_args.h"

namespace interp::fft {

// What a transform of n elements is divided by.
enum class Scaling : int8_t { kNone, kRoot, kCount };

struct FftAttrs {
  IntList axes;
  bool forward = true;
  Scaling scaling = Scaling::kNone;
  bool onesided = true;       // fft_r2c: the first half of the last axis, the rest are conjugates
  int64_t last_dim_size = 0;  // fft_c2r: of the result along the last axis; 0: an even one
};

FftAttrs ReadFftAttrs(AttrReader& reader);

// The axes counted from the front. InvalidArgument where one is outside, listed twice, or longer
// than what can be transformed, or there is none.
absl::StatusOr<std::vector<int>> AxesOf(const FftAttrs& attrs, const Shape& shape);

// What results of transforms of `numel` elements are multiplied by.
double FactorOf(Scaling scaling, int64_t numel);

// The elements of `shape` along the axes.
int64_t SignalSize(const Shape& shape, const std::vector<int>& axes);

}  // namespace interp::fft
