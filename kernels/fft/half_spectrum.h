// Spectra of real signals along one axis: the second half are conjugates of the first.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>

#include "kernels/util/lines.h"

namespace interp::fft {

// Elements of the first half of a spectrum of `length`.
inline int64_t HalfLength(int64_t length) { return length / 2 + 1; }

// Writes elements [0, half.length) of each line of `from`, times `factor`, to `to`.
// REQUIRES: half.length <= full.length.
template <typename To>
void TakeHalf(int num_threads, const Lines& full, const Lines& half,
              const std::complex<double>* from, double factor, To* to) {
  ForEachLine(half, LineTasks(half, num_threads), [&](int64_t, int64_t index) {
    const std::complex<double>* const source = from + full.Start(index);
    To* const out = to + half.Start(index);
    for (int64_t i = 0; i < half.length; ++i) {
      out[i * half.inner] = static_cast<To>(source[i * full.inner] * factor);
    }
  });
}

// Completes the lines of `half` to those of real signals of full.length elements. Missing elements
// are 0; imaginary parts that no real signal has are left out.
template <typename From>
void CompleteSpectrum(int num_threads, const Lines& half, const Lines& full, const From* from,
                      std::complex<double>* to) {
  ForEachLine(full, LineTasks(full, num_threads), [&](int64_t, int64_t index) {
    const From* const source = from + half.Start(index);
    std::complex<double>* const out = to + full.Start(index);
    const int64_t n = full.length;
    for (int64_t k = 0; k < HalfLength(n); ++k) {
      std::complex<double> value(0);
      if (k < half.length) value = std::complex<double>(source[k * half.inner]);
      if (k == 0 || 2 * k == n) value = value.real();
      out[k * full.inner] = value;
      if (k > 0) out[(n - k) * full.inner] = std::conj(value);
    }
  });
}

}  // namespace interp::fft
