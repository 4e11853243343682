// The elements of a tensor of any dtype as doubles, for printing and comparing.
#pragma once

#include <complex>
#include <string>
#include <type_traits>
#include <vector>

#include "core/tensor.h"

namespace interp {

// Calls f(const T* data, int64_t count) with the tensor's element type. Returns false, without a
// call, for dtypes that have no C++ type here (float8) and tensors without memory.
// REQUIRES: plain layout.
template <typename F>
bool VisitElements(const Tensor& tensor, F f) {
  if (!tensor.has_memory()) return false;
  const auto visit = [&]<typename T>(T*) {
    f(tensor.data<T>(), tensor.numel());
    return true;
  };
  switch (tensor.dtype) {
    case DType::kBool:
      return visit(static_cast<bool*>(nullptr));
    case DType::kInt8:
      return visit(static_cast<int8_t*>(nullptr));
    case DType::kUInt8:
      return visit(static_cast<uint8_t*>(nullptr));
    case DType::kInt16:
      return visit(static_cast<int16_t*>(nullptr));
    case DType::kInt32:
      return visit(static_cast<int32_t*>(nullptr));
    case DType::kInt64:
      return visit(static_cast<int64_t*>(nullptr));
    case DType::kFloat16:
      return visit(static_cast<float16*>(nullptr));
    case DType::kBFloat16:
      return visit(static_cast<bfloat16*>(nullptr));
    case DType::kFloat32:
      return visit(static_cast<float*>(nullptr));
    case DType::kFloat64:
      return visit(static_cast<double*>(nullptr));
    case DType::kComplex64:
      return visit(static_cast<std::complex<float>*>(nullptr));
    case DType::kComplex128:
      return visit(static_cast<std::complex<double>*>(nullptr));
    default:
      return false;
  }
}

// An element as a double; the magnitude of a complex one.
template <typename T>
double ToDouble(const T& value) {
  return static_cast<double>(value);
}
template <typename T>
double ToDouble(const std::complex<T>& value) {
  return std::abs(std::complex<double>(value));
}

// An element as text: integers exactly, complex ones as "1+2j", the others with up to `digits`
// digits.
std::string RealText(double value, int digits);
template <typename T>
std::string ValueText(const T& value, int digits = 6) {
  if constexpr (std::is_integral_v<T>) {
    return absl::StrCat(static_cast<int64_t>(value));
  } else {
    return RealText(ToDouble(value), digits);
  }
}
template <typename T>
std::string ValueText(const std::complex<T>& value, int digits = 6) {
  const std::string imaginary = RealText(value.imag(), digits);
  return absl::StrCat(RealText(value.real(), digits), imaginary[0] == '-' ? "" : "+", imaginary,
                      "j");
}

// "[0,2,17]": where element `index` is in a tensor of this shape.
std::string IndexText(const Shape& shape, int64_t index);

// "[[0,2,5]]"
std::string LodText(const Lod& lod);

}  // namespace interp
