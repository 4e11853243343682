// Element types of tensors. The numeric values are those of Paddle's VarType.Type, so they can be
// read from and written to files as they are.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "core/float16.h"

namespace interp {

enum class DType : int8_t {
  kBool = 0,
  kInt16 = 1,
  kInt32 = 2,
  kInt64 = 3,
  kFloat16 = 4,
  kFloat32 = 5,
  kFloat64 = 6,
  kUInt8 = 20,
  kInt8 = 21,
  kBFloat16 = 22,
  kComplex64 = 23,
  kComplex128 = 24,
  kFloat8E4M3 = 32,
  kFloat8E5M2 = 33,
  kUndefined = -1,
};

// Bytes of one element; 0 for kUndefined.
size_t SizeOf(DType dtype);

// "float32", "int64", "bool", ... as NumPy spells them; "undefined" for kUndefined.
absl::string_view Name(DType dtype);

// Inverse of Name; nullopt for an unknown name.
std::optional<DType> DTypeFromName(absl::string_view name);

// The dtype with Paddle's VarType.Type number `code`, nullopt if it is no element type.
// SIZE_T (19) reads as int64.
std::optional<DType> DTypeFromCode(int code);

constexpr bool IsFloating(DType d) {
  return d == DType::kFloat32 || d == DType::kFloat64 || d == DType::kFloat16 ||
         d == DType::kBFloat16;
}

constexpr bool IsComplex(DType d) { return d == DType::kComplex64 || d == DType::kComplex128; }

// DTypeOf<T>: the DType whose elements are stored as C++ type T.
template <typename T>
inline constexpr DType DTypeOf = DType::kUndefined;
template <>
inline constexpr DType DTypeOf<bool> = DType::kBool;
template <>
inline constexpr DType DTypeOf<int16_t> = DType::kInt16;
template <>
inline constexpr DType DTypeOf<int32_t> = DType::kInt32;
template <>
inline constexpr DType DTypeOf<int64_t> = DType::kInt64;
template <>
inline constexpr DType DTypeOf<float16> = DType::kFloat16;
template <>
inline constexpr DType DTypeOf<float> = DType::kFloat32;
template <>
inline constexpr DType DTypeOf<double> = DType::kFloat64;
template <>
inline constexpr DType DTypeOf<uint8_t> = DType::kUInt8;
template <>
inline constexpr DType DTypeOf<int8_t> = DType::kInt8;
template <>
inline constexpr DType DTypeOf<bfloat16> = DType::kBFloat16;
template <>
inline constexpr DType DTypeOf<std::complex<float>> = DType::kComplex64;
template <>
inline constexpr DType DTypeOf<std::complex<double>> = DType::kComplex128;

}  // namespace interp
