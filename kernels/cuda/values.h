// What kernels load, compute with and store: element types, vectors of them, and the dispatch from
// a DType. Included by `.cu` files alone.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/util/arithmetic.h"

#ifndef INTERP_CUDA_EMULATION  // whose 16-bit floats are those of core/float16.h
namespace interp {

template <>
struct ComputeTypeOf<__half> {
  using type = float;
};
template <>
struct ComputeTypeOf<__nv_bfloat16> {
  using type = float;
};

}  // namespace interp
#endif

namespace interp::cuda {

template <typename T>
__device__ ComputeType<T> ToCompute(T value) {
  return value;
}
__device__ inline float ToCompute(__half value) { return __half2float(value); }
__device__ inline float ToCompute(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename T>
__device__ T FromCompute(ComputeType<T> value) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(value);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(value);
  } else {
    return value;
  }
}

// N neighbours in memory, loaded and stored at once. REQUIRES: an address aligned to its size.
template <typename T, int N>
struct alignas(sizeof(T) * N) Vector {
  T values[N];
};

// Elements of the widest access that the hardware has.
template <typename T>
inline constexpr int kVectorSize = 16 / static_cast<int>(sizeof(T));

inline bool AlignedTo(const void* address, size_t bytes) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

// A float as an integer, as x86 processors convert: NaN and what is out of range become the
// smallest value of 32 or 64 bits, narrower integers keep low bits of the 32-bit result.
template <typename To, typename C>
__device__ To Truncate(C value) {
  using Wide = std::conditional_t<sizeof(To) == 8, int64_t, int32_t>;
  constexpr C kLimit = sizeof(Wide) == 8 ? C(0x1p63) : C(0x1p31);
  return static_cast<To>(value >= -kLimit && value < kLimit ? static_cast<Wide>(value)
                                                            : std::numeric_limits<Wide>::min());
}

// The least value, for maxima: -infinity where there is one.
template <typename T>
__device__ T Lowest() {
  if constexpr (std::numeric_limits<T>::has_infinity) return -std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::lowest();
}
template <typename T>
__device__ T Highest() {
  if constexpr (std::numeric_limits<T>::has_infinity) return std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::max();
}

// A type as a value.
template <typename T>
struct Type {
  using type = T;
};

// Calls function(Type<T>()) for the storage type of `dtype`, of those that the kernel `what` takes.
template <typename Function>
absl::Status WithFloats(absl::string_view what, DType dtype, Function function) {
  switch (dtype) {
    case DType::kFloat32:
      return function(Type<float>());
    case DType::kFloat16:
      return function(Type<__half>());
    case DType::kBFloat16:
      return function(Type<__nv_bfloat16>());
    default:
      return Unimplemented(what, " of ", Name(dtype), " on a GPU");
  }
}
template <typename Function>
absl::Status WithNumbers(absl::string_view what, DType dtype, Function function) {
  switch (dtype) {
    case DType::kFloat64:
      return function(Type<double>());
    case DType::kInt32:
      return function(Type<int32_t>());
    case DType::kInt64:
      return function(Type<int64_t>());
    default:
      return WithFloats(what, dtype, function);
  }
}

template <typename Function>
absl::Status WithScalars(absl::string_view what, DType dtype, Function function) {
  switch (dtype) {
    case DType::kBool:
      return function(Type<bool>());
    case DType::kUInt8:
      return function(Type<uint8_t>());
    case DType::kInt8:
      return function(Type<int8_t>());
    case DType::kInt16:
      return function(Type<int16_t>());
    default:
      return WithNumbers(what, dtype, function);
  }
}

}  // namespace interp::cuda
