// The dtypes of complex numbers and of their parts.
#pragma once

#include <complex>

#include "core/dtype.h"

namespace interp {

// The dtype of the parts of a complex number; any other dtype stays.
inline DType RealDType(DType dtype) {
  if (dtype == DType::kComplex64) return DType::kFloat32;
  return dtype == DType::kComplex128 ? DType::kFloat64 : dtype;
}

// The dtype of complex numbers with parts of `dtype`; any other dtype stays.
inline DType ComplexDType(DType dtype) {
  if (dtype == DType::kFloat32) return DType::kComplex64;
  return dtype == DType::kFloat64 ? DType::kComplex128 : dtype;
}

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

// The complex conjugate; a real number is its own.
template <typename T>
T Conjugate(T x) {
  if constexpr (kIsComplex<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

}  // namespace interp
