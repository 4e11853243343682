#include "kernels/fft/plan.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/fft/lanes.h"

namespace interp::fft {
namespace {

// exp(-2 pi i k / length) for k in [0, length). Angles are at most an eighth of a turn, whose sines
// are the most exact.
Pair<double> Root(int64_t k, int64_t length) {
  const int64_t octant = 8 * k / length;
  const auto angle = [=](int64_t turned) {
    return 2 * std::numbers::pi * static_cast<double>(turned) / (8 * static_cast<double>(length));
  };
  const double a = angle(8 * k - octant * length);           // from the start of the octant
  const double b = angle(octant * length + length - 8 * k);  // to its end
  switch (octant) {
    case 0:
      return {std::cos(a), -std::sin(a)};
    case 1:
      return {std::sin(b), -std::cos(b)};
    case 2:
      return {-std::sin(a), -std::cos(a)};
    case 3:
      return {-std::cos(b), -std::sin(b)};
    case 4:
      return {-std::cos(a), std::sin(a)};
    case 5:
      return {-std::sin(b), std::cos(b)};
    case 6:
      return {std::sin(a), std::cos(a)};
    default:
      return {std::cos(b), std::sin(b)};
  }
}

template <typename T>
Pair<T> Narrow(const Pair<double>& x) {
  return {static_cast<T>(x.re), static_cast<T>(x.im)};
}

// Eights first, with a four or two, or a two, for what is left.
std::vector<int> RadicesOf(int64_t length) {
  std::vector<int> radices;
  int twos = 0;
  for (; length % 2 == 0; length /= 2) ++twos;
  const int fours = twos % 3 == 2 ? 1 : twos % 3 == 1 && twos > 1 ? 2 : 0;
  radices.assign((twos - 2 * fours) / 3, 8);
  radices.insert(radices.end(), fours, 4);
  if (twos == 1) radices.push_back(2);
  for (int64_t p = 3; length > 1; p += 2) {
    if (p * p > length) p = length;
    for (; length % p == 0; length /= p) {
      if (p > kLargestRadix) return {};
      radices.push_back(static_cast<int>(p));
    }
  }
  return radices;
}

template <typename T>
Step<T> MakeStep(int radix, int64_t count, int64_t span) {
  Step<T> step = {.radix = radix, .count = count, .span = span, .factors = {}, .roots = {}};
  const int64_t length = radix * span;
  step.factors.reserve((span - 1) * (radix - 1));
  for (int64_t i = 1; i < span; ++i) {
    for (int64_t r = 1; r < radix; ++r) step.factors.push_back(Narrow<T>(Root(i * r, length)));
  }
  if (radix % 2 == 1) {
    step.roots = Roots<T>(radix, radix);
    for (Pair<T>& root : step.roots) root.im = -root.im;
  }
  return step;
}

// The least length from `least` on whose only factors are twos and at most two threes or fives.
int64_t SmoothLengthFrom(int64_t least) {
  int64_t best = 0;
  for (const int64_t odd : {1, 3, 5, 9, 15, 25}) {
    int64_t length = odd;
    while (length < least) length *= 2;
    if (best == 0 || length < best) best = length;
  }
  return best;
}

template <typename T>
void MakeConvolution(Plan<T>& plan) {
  const int64_t length = plan.length;
  const int64_t size = SmoothLengthFrom(2 * length - 1);
  plan.convolution = MakePlan<T>(size);
  plan.buffer_length = size;
  std::vector<Pair<double>> padded(size), other(size);
  plan.chirp.reserve(length);
  for (int64_t k = 0; k < length; ++k) {
    // k^2 modulo 2 length keeps the angle small and so exact. It is below 2^57.
    const Pair<double> chirp = Root(k * k % (2 * length), 2 * length);
    plan.chirp.push_back(Narrow<T>(chirp));
    padded[k] = Conjugate(chirp);
    if (k > 0) padded[size - k] = padded[k];
  }
  const std::unique_ptr<const Plan<double>> exact = MakePlan<double>(size);
  const Pair<double>* const filter = RunPlan(*exact, padded.data(), other.data());
  const double factor = 1 / static_cast<double>(size);
  plan.filter.reserve(size);
  for (int64_t k = 0; k < size; ++k) {
    plan.filter.push_back(Narrow<T>({filter[k].re * factor, filter[k].im * factor}));
  }
}

}  // namespace

template <typename T>
std::vector<Pair<T>> Roots(int64_t length, int64_t count) {
  std::vector<Pair<T>> roots;
  roots.reserve(count);
  for (int64_t k = 0; k < count; ++k) roots.push_back(Narrow<T>(Root(k, length)));
  return roots;
}

template <typename T>
std::unique_ptr<const Plan<T>> MakePlan(int64_t length) {
  auto plan = std::make_unique<Plan<T>>();
  plan->length = length;
  plan->buffer_length = length;
  const std::vector<int> radices = RadicesOf(length);
  if (radices.empty() && length > 1) {
    MakeConvolution(*plan);
    return plan;
  }
  int64_t count = 1;
  for (const int radix : radices) {
    plan->steps.push_back(MakeStep<T>(radix, count, length / count / radix));
    count *= radix;
  }
  return plan;
}

template std::vector<Pair<float>> Roots(int64_t, int64_t);
template std::vector<Pair<double>> Roots(int64_t, int64_t);
template std::unique_ptr<const Plan<float>> MakePlan(int64_t);
template std::unique_ptr<const Plan<double>> MakePlan(int64_t);

}  // namespace interp::fft
