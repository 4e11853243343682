// The discrete Fourier transform of all lines of a plain tensor along an axis:
//   out[k] = factor * sum over j of in[j] exp(-2 pi i j k / length), +2 pi backwards.
// As many lines as a register has lanes are transformed together. Numbers have the precision of the
// tensor, as in Paddle. T is float or double.
#pragma once

#include <complex>
#include <cstdint>

#include "absl/types/span.h"
#include "core/op_def.h"

namespace interp::fft {

// Longest line: its convolution must fit memory.
inline constexpr int64_t kMaxLength = int64_t{1} << 28;

// Elements of the first half of a spectrum of `length`; those after are conjugates, where the
// signal is real.
inline int64_t HalfLength(int64_t length) { return length / 2 + 1; }

struct LineOptions {
  bool forward = true;
  double factor = 1;
  // Of elements of a half spectrum that stand for two: what they are multiplied by, too.
  double twin_factor = 1;
};

// From `in` to `out`, which may be the same memory, along one axis after the other. REQUIRES: axes
// is not empty.
template <typename T>
absl::Status Transform(const KernelContext& ctx, const Shape& shape, absl::Span<const int> axes,
                       const LineOptions& options, const std::complex<T>* in, std::complex<T>* out);

// As Transform along all `axes`, where index axes[i] of a result is below `length` along `axis`
// alone: others are neither read nor written.
template <typename T>
absl::Status TransformFirst(const KernelContext& ctx, const Shape& shape,
                            absl::Span<const int> axes, const LineOptions& options, int axis,
                            int64_t length, std::complex<T>* data);

// The spectra of the real lines of `in`, with `half` only the first half of each. `out` has along
// `axis` that length or a larger one, and else the same shape.
template <typename T>
absl::Status TransformReal(const KernelContext& ctx, const Shape& shape, int axis,
                           const Shape& out_shape, bool half, const LineOptions& options,
                           const T* in, std::complex<T>* out);

// The real lines of `out`, whose spectra have the lines of `in` as their first half: what is
// missing is 0, what is beyond the half is not read, and imaginary parts that no real signal has
// count as 0.
template <typename T>
absl::Status TransformToReal(const KernelContext& ctx, const Shape& in_shape,
                             const Shape& out_shape, int axis, const LineOptions& options,
                             const std::complex<T>* in, T* out);

// Completes spectra of real signals, of which the first half along axes.back() is there: each other
// element is the conjugate of that at the negated indices.
template <typename T>
void CompleteConjugates(int num_threads, const Shape& shape, absl::Span<const int> axes,
                        std::complex<T>* data);

}  // namespace interp::fft
