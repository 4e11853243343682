// What the transform of lines of one length needs and all its lines share: steps with their
// factors, rounded once from double.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace interp::fft {

template <typename V>
struct Pair;

// The work of a step grows with its radix. Beyond this a convolution (Bluestein) takes less.
inline constexpr int kLargestRadix = 97;

// One step of a transform of radix * span * count elements, see lanes.h.
template <typename T>
struct Step {
  int radix = 1;
  int64_t count = 1;  // the product of the radices of the steps before
  int64_t span = 1;   // and of those after
  // Of element i > 0 of result r > 0: exp(-2 pi i i r / (radix span)), r innermost.
  std::vector<Pair<T>> factors;
  std::vector<Pair<T>> roots;  // exp(2 pi i m / radix) for m in [0, radix), of an odd radix
};

// The transform exp(-2 pi i j k / length), by steps or by a convolution.
template <typename T>
struct Plan {
  int64_t length = 1;
  int64_t buffer_length = 1;  // elements that a line takes while it is transformed
  std::vector<Step<T>> steps;
  std::unique_ptr<const Plan> convolution;  // of a larger length; null: by steps
  std::vector<Pair<T>> chirp;               // exp(-pi i k^2 / length)
  std::vector<Pair<T>> filter;  // the spectrum of its conjugate, over convolution->length
};

// May throw std::bad_alloc. REQUIRES: 1 <= length.
template <typename T>
std::unique_ptr<const Plan<T>> MakePlan(int64_t length);

// exp(-2 pi i k / length) for k in [0, count), exact up to rounding.
template <typename T>
std::vector<Pair<T>> Roots(int64_t length, int64_t count);

}  // namespace interp::fft
