// From the dtype of a tensor to the C++ type of its elements.
#pragma once

#include <complex>
#include <cstdint>

#include "core/dtype.h"
#include "core/float16.h"

namespace interp {

// Calls body.operator()<T>() for that of `Ts` which `dtype` is. False where it is none of them.
template <typename... Ts, typename Body>
bool WithOneOf(DType dtype, const Body& body) {
  return ((dtype == DTypeOf<Ts> && (body.template operator()<Ts>(), true)) || ...);
}

// The same for all numbers.
template <typename Body>
bool WithNumber(DType dtype, const Body& body) {
  return WithOneOf<float, double, float16, bfloat16, bool, int8_t, uint8_t, int16_t, int32_t,
                   int64_t>(dtype, body);
}

// The same for all types of elements, complex ones too.
template <typename Body>
bool WithElement(DType dtype, const Body& body) {
  return WithNumber(dtype, body) ||
         WithOneOf<std::complex<float>, std::complex<double>>(dtype, body);
}

}  // namespace interp
