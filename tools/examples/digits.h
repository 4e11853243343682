// Drawings of digits: data to learn from that needs no file.
//
// Each picture is a digit in strokes of a pen, turned, slanted, scaled, shifted, of random
// thickness and with noise, as tools/digits/make_digits.py draws them, too. Sets of different seeds
// have no picture in common: train on one, test on another. LeNet reads 99 of 100 new ones after
// one pass over 6000.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "core/tensor.h"

namespace interp::examples {

inline constexpr int kDigitSize = 28;  // pixels on each side

struct Digits {
  Tensor images;  // float32[count,1,28,28], from 0 to 1
  Tensor labels;  // int64[count,1]
};

// The same seed gives the same pictures. About 20 microseconds each.
absl::StatusOr<Digits> DrawDigits(int64_t count, uint64_t seed);

// Rows [begin, end) of a set, whose memory they use: it must outlive them.
// REQUIRES: 0 <= begin <= end <= count.
Digits Rows(const Digits& digits, int64_t begin, int64_t end);

}  // namespace interp::examples
