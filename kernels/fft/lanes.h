// The steps of a fast Fourier transform over values of a type V: a number, or a vector of them with
// an element of another line in each lane, so that all lines are transformed by the same steps.
//
// A step splits transforms of `radix * span` elements into `radix` ones of `span`. It reads
// element (i, r, k) of [count][radix][span], i innermost, and writes (i, k, r) of
// [radix][count][span] (Stockham), so results come out in order and no step works in place.
// Long because each kind of radix has its code.
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/fft/plan.h"
#include "kernels/util/register_vectors.h"

namespace interp::fft {

template <typename V>
struct Pair {
  V re, im;
};

template <typename V>
inline Pair<V> operator+(const Pair<V>& a, const Pair<V>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <typename V>
inline Pair<V> operator-(const Pair<V>& a, const Pair<V>& b) {
  return {a.re - b.re, a.im - b.im};
}
template <typename V, typename T>
inline Pair<V> operator*(const Pair<V>& a, const Pair<T>& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <typename V>
inline Pair<V> Conjugate(const Pair<V>& a) {
  return {a.re, -a.im};
}
template <typename V>
inline Pair<V> TimesMinusI(const Pair<V>& a) {
  return {a.im, -a.re};
}
template <typename V>
inline Pair<V> Swapped(const Pair<V>& a) {
  return {a.im, a.re};
}

namespace lanes_internal {

template <typename V>
inline void Transform4(Pair<V>& a, Pair<V>& b, Pair<V>& c, Pair<V>& d) {
  const Pair<V> even = a + c;
  const Pair<V> odd = b + d;
  const Pair<V> even_turned = a - c;
  const Pair<V> odd_turned = TimesMinusI(b - d);
  a = even + odd;
  b = even_turned + odd_turned;
  c = even - odd;
  d = even_turned - odd_turned;
}

// The transform of kRadix elements, in place.
template <int kRadix>
struct Small;

template <>
struct Small<2> {
  template <typename V, typename T>
  static void Run(Pair<V>* x, const Pair<T>* /*roots*/) {
    const Pair<V> sum = x[0] + x[1];
    x[1] = x[0] - x[1];
    x[0] = sum;
  }
};

template <>
struct Small<4> {
  template <typename V, typename T>
  static void Run(Pair<V>* x, const Pair<T>* /*roots*/) {
    Transform4(x[0], x[1], x[2], x[3]);
  }
};

template <>
struct Small<8> {
  template <typename V, typename T>
  static void Run(Pair<V>* x, const Pair<T>* /*roots*/) {
    constexpr T kHalfRoot = static_cast<T>(0.70710678118654752440);
    Transform4(x[0], x[2], x[4], x[6]);
    Transform4(x[1], x[3], x[5], x[7]);
    const Pair<V> a = x[1];
    const Pair<V> b = {(x[3].re + x[3].im) * kHalfRoot, (x[3].im - x[3].re) * kHalfRoot};
    const Pair<V> c = TimesMinusI(x[5]);
    const Pair<V> d = {(x[7].im - x[7].re) * kHalfRoot, (x[7].re + x[7].im) * -kHalfRoot};
    const Pair<V> even[] = {x[0], x[2], x[4], x[6]};
    const Pair<V> odd[] = {a, b, c, d};
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      x[k] = even[k] + odd[k];
      x[k + 4] = even[k] - odd[k];
    }
  }
};

// Of an odd number of elements: sums and differences of the elements that lie as far from the ends
// have real factors. roots[m] = exp(2 pi i m / radix).
template <int kRadix>
struct Small {
  template <typename V, typename T>
  static void Run(Pair<V>* x, const Pair<T>* roots) {
    constexpr int kHalf = kRadix / 2;
    Pair<V> sums[kHalf], differences[kHalf];
    Pair<V> first = x[0];
#pragma GCC unroll 8
    for (int j = 1; j <= kHalf; ++j) {
      sums[j - 1] = x[j] + x[kRadix - j];
      differences[j - 1] = x[j] - x[kRadix - j];
      first = first + sums[j - 1];
    }
#pragma GCC unroll 8
    for (int k = 1; k <= kHalf; ++k) {
      Pair<V> even = x[0];
      Pair<V> odd = {differences[0].re * roots[k].im, differences[0].im * roots[k].im};
      even = {even.re + sums[0].re * roots[k].re, even.im + sums[0].im * roots[k].re};
#pragma GCC unroll 8
      for (int j = 2; j <= kHalf; ++j) {
        const Pair<T>& root = roots[j * k % kRadix];
        even = {even.re + sums[j - 1].re * root.re, even.im + sums[j - 1].im * root.re};
        odd = {odd.re + differences[j - 1].re * root.im, odd.im + differences[j - 1].im * root.im};
      }
      x[k] = {even.re + odd.im, even.im - odd.re};
      x[kRadix - k] = {even.re - odd.im, even.im + odd.re};
    }
    x[0] = first;
  }
};

template <int kRadix, typename V, typename T>
void RunStep(const Step<T>& step, const Pair<V>* in, Pair<V>* out) {
  const int64_t span = step.span;
  const int64_t out_step = step.count * span;
  for (int64_t k = 0; k < step.count; ++k) {
    const Pair<V>* const from = in + k * kRadix * span;
    Pair<V>* const to = out + k * span;
    Pair<V> x[kRadix];
#pragma GCC unroll 16
    for (int r = 0; r < kRadix; ++r) x[r] = from[r * span];
    Small<kRadix>::Run(x, step.roots.data());
#pragma GCC unroll 16
    for (int r = 0; r < kRadix; ++r) to[r * out_step] = x[r];
    const Pair<T>* factors = step.factors.data();
    for (int64_t i = 1; i < span; ++i, factors += kRadix - 1) {
#pragma GCC unroll 16
      for (int r = 0; r < kRadix; ++r) x[r] = from[r * span + i];
      Small<kRadix>::Run(x, step.roots.data());
      to[i] = x[0];
#pragma GCC unroll 16
      for (int r = 1; r < kRadix; ++r) to[r * out_step + i] = x[r] * factors[r - 1];
    }
  }
}

// As RunStep, for an odd radix that no code is generated for.
template <typename V, typename T>
void RunOddStep(const Step<T>& step, const Pair<V>* in, Pair<V>* out) {
  const int radix = step.radix;
  const int half = radix / 2;
  const int64_t span = step.span;
  Pair<V> sums[kLargestRadix / 2], differences[kLargestRadix / 2];
  for (int64_t k = 0; k < step.count; ++k) {
    for (int64_t i = 0; i < span; ++i) {
      const Pair<V>* const from = in + k * radix * span + i;
      const Pair<T>* const factors = step.factors.data() + (i - 1) * (radix - 1);
      const auto write = [&](int r, const Pair<V>& x) {
        out[(r * step.count + k) * span + i] = i == 0 ? x : x * factors[r - 1];
      };
      Pair<V> first = from[0];
      for (int j = 1; j <= half; ++j) {
        sums[j - 1] = from[j * span] + from[(radix - j) * span];
        differences[j - 1] = from[j * span] - from[(radix - j) * span];
        first = first + sums[j - 1];
      }
      out[k * span + i] = first;
      for (int r = 1; r <= half; ++r) {
        Pair<V> even = from[0];
        Pair<V> odd = {V{}, V{}};
        for (int j = 1, at = r; j <= half; ++j) {
          const Pair<T>& root = step.roots[at];
          even = {even.re + sums[j - 1].re * root.re, even.im + sums[j - 1].im * root.re};
          odd = {odd.re + differences[j - 1].re * root.im,
                 odd.im + differences[j - 1].im * root.im};
          at = at + r < radix ? at + r : at + r - radix;
        }
        write(r, {even.re + odd.im, even.im - odd.re});
        write(radix - r, {even.re - odd.im, even.im + odd.re});
      }
    }
  }
}

template <typename V, typename T>
void RunAnyStep(const Step<T>& step, const Pair<V>* in, Pair<V>* out) {
  switch (step.radix) {
    case 2:
      return RunStep<2>(step, in, out);
    case 3:
      return RunStep<3>(step, in, out);
    case 4:
      return RunStep<4>(step, in, out);
    case 5:
      return RunStep<5>(step, in, out);
    case 7:
      return RunStep<7>(step, in, out);
    case 8:
      return RunStep<8>(step, in, out);
    default:
      return RunOddStep(step, in, out);
  }
}

}  // namespace lanes_internal

// Transforms plan.length elements of `x` without a factor; `other` is scratch of
// plan.buffer_length, as x is. Returns where the result is: x or other.
template <typename V, typename T>
Pair<V>* RunPlan(const Plan<T>& plan, Pair<V>* x, Pair<V>* other) {
  if (plan.convolution != nullptr) {
    // X[k] = chirp[k] sum over j of (x[j] chirp[j]) conj(chirp[k - j]), as 2jk = j^2 + k^2 -
    // (k-j)^2. The way back is that forth of numbers with real and imaginary parts swapped.
    const int64_t size = plan.convolution->length;
    for (int64_t j = 0; j < plan.length; ++j) x[j] = x[j] * plan.chirp[j];
    for (int64_t j = plan.length; j < size; ++j) x[j] = {V{}, V{}};
    Pair<V>* const spectrum = RunPlan(*plan.convolution, x, other);
    for (int64_t k = 0; k < size; ++k) spectrum[k] = Swapped(spectrum[k] * plan.filter[k]);
    Pair<V>* const result = RunPlan(*plan.convolution, spectrum, spectrum == x ? other : x);
    for (int64_t k = 0; k < plan.length; ++k) result[k] = Swapped(result[k]) * plan.chirp[k];
    return result;
  }
  for (const Step<T>& step : plan.steps) {
    lanes_internal::RunAnyStep(step, x, other);
    std::swap(x, other);
  }
  return x;
}

}  // namespace interp::fft
