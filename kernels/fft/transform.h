// The discrete Fourier transform, by Eigen.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>

#include "core/op_def.h"

namespace interp::fft {

// Transforms lines of one length, in double and without a factor:
//   line[k] = sum over j of line[j] exp(-2 pi i j k / length), +2 pi backwards.
// Lengths with a large prime factor take a convolution (Bluestein), so that the work is that of a
// sort whatever the length.
class LineTransform {
 public:
  // Allocates all memory that Run needs; may throw std::bad_alloc. REQUIRES: length >= 1.
  LineTransform(int64_t length, bool forward);
  LineTransform(LineTransform&&) noexcept;
  ~LineTransform();

  // In place. Not for several threads at a time.
  void Run(std::complex<double>* line);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Longest line: its convolution must fit the 32-bit lengths of Eigen.
inline constexpr int64_t kMaxLength = int64_t{1} << 28;

// Transforms `data`, a plain tensor of that shape, along `axis`, in place.
absl::Status TransformAxis(const KernelContext& ctx, const Shape& shape, int axis, bool forward,
                           std::complex<double>* data);

}  // namespace interp::fft
