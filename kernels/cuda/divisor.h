// Divisor: division by a number that the host knows, without dividing on the device.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace interp::cuda {

// Multiplies by a rounded reciprocal (Granlund and Montgomery, "Division by invariant integers
// using multiplication", PLDI 1994). For dividends and divisors below 2^31.
class Divisor {
 public:
  Divisor() = default;
  // REQUIRES: 0 < divisor < 2^31.
  explicit Divisor(uint32_t divisor) : divisor_(divisor) {
    while ((uint64_t{1} << shift_) < divisor) ++shift_;
    const uint64_t excess = (uint64_t{1} << shift_) - divisor;
    factor_ = static_cast<uint32_t>((excess << 32) / divisor + 1);
  }

  // Divides `number` and leaves the quotient there; the remainder.
  __device__ uint32_t Split(uint32_t& number) const {
    const uint32_t quotient = (__umulhi(number, factor_) + number) >> shift_;
    const uint32_t remainder = number - quotient * divisor_;
    number = quotient;
    return remainder;
  }

 private:
  uint32_t divisor_ = 1;
  uint32_t factor_ = 1;
  uint32_t shift_ = 0;
};

// Indices are 32 bits wide in kernels that divide them.
inline constexpr int64_t kMostElements = (int64_t{1} << 31) - 1;

}  // namespace interp::cuda
