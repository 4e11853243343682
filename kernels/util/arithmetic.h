// Arithmetic of kernels that is defined for every input: integers wrap around, floats out of range
// become what the processor's conversion gives.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/float16.h"

namespace interp {

template <typename T>
inline constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// The type to compute in for storage type T: float for the 16-bit floats.
template <typename T>
struct ComputeTypeOf {
  using type = T;
};
template <>
struct ComputeTypeOf<float16> {
  using type = float;
};
template <>
struct ComputeTypeOf<bfloat16> {
  using type = float;
};
template <typename T>
using ComputeType = typename ComputeTypeOf<T>::type;

// Integers wrap around; everything else adds as usual.
template <typename T>
constexpr T WrapAdd(T a, T b) {
  if constexpr (kIsInteger<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}
template <typename T>
constexpr T WrapSub(T a, T b) {
  if constexpr (kIsInteger<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) - static_cast<U>(b)));
  } else {
    return a - b;
  }
}
template <typename T>
constexpr T WrapMul(T a, T b) {
  if constexpr (kIsInteger<T>) {
    // At least unsigned int: 16-bit operands would be promoted to int, which can overflow.
    using U = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  } else if constexpr (std::is_same_v<T, bool>) {
    return a && b;
  } else {
    return a * b;
  }
}

// Converts between element types. NaN and floats outside the range of a 32- or 64-bit integer give
// its smallest value, as the x86 instructions do; narrower integers keep the low bits of the 32-bit
// result. Anything but zero is true.
template <typename To, typename From>
To Convert(From from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else if constexpr (std::is_same_v<To, bool>) {
    return static_cast<ComputeType<From>>(from) != 0;
  } else if constexpr (kIsInteger<To> && !std::is_integral_v<From>) {
    using Wide = std::conditional_t<sizeof(To) == 8, int64_t, int32_t>;
    using F = ComputeType<From>;
    const F value = static_cast<F>(from);
    constexpr F kLimit = sizeof(To) == 8 ? F{0x1p63} : F{0x1p31};
    const bool in_range = value >= -kLimit && value < kLimit;
    const Wide wide = static_cast<Wide>(in_range ? value : F{0});
    return static_cast<To>(in_range ? wide : std::numeric_limits<Wide>::min());
  } else {
    return static_cast<To>(static_cast<ComputeType<To>>(static_cast<ComputeType<From>>(from)));
  }
}

// `value` truncated, or the nearest T when it is outside the range; NaN gives 0. For bounds.
template <typename T>
T Saturate(double value) {
  if constexpr (kIsInteger<T>) {
    if (std::isnan(value)) return 0;
    if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
      return std::numeric_limits<T>::min();
    }
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
  }
  return static_cast<T>(static_cast<ComputeType<T>>(value));
}

// base^exponent, wrapping around. A negative exponent gives the reciprocal rounded towards zero; of
// base 0 too, where it does not exist.
template <typename T>
T IntegerPower(T base, T exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (std::is_signed_v<T> && base == T(-1)) return exponent % 2 == 0 ? T{1} : T(-1);
    return 0;
  }
  T result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = WrapMul(result, base);
    base = WrapMul(base, base);
  }
  return result;
}

}  // namespace interp
