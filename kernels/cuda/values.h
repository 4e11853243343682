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

namespace interp::cuda {

// The type to compute in for storage type T.
template <typename T>
struct ComputeTypeOf {
  using type = T;
};
template <>
struct ComputeTypeOf<__half> {
  using type = float;
};
template <>
struct ComputeTypeOf<__nv_bfloat16> {
  using type = float;
};
template <typename T>
using ComputeType = typename ComputeTypeOf<T>::type;

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

// x + y, x - y and x * y; integers wrap around.
template <typename C>
__device__ C WrapAdd(C x, C y) {
  if constexpr (std::is_integral_v<C>) {
    using U = std::make_unsigned_t<C>;
    return static_cast<C>(static_cast<U>(x) + static_cast<U>(y));
  } else {
    return x + y;
  }
}
template <typename C>
__device__ C WrapSubtract(C x, C y) {
  if constexpr (std::is_integral_v<C>) {
    using U = std::make_unsigned_t<C>;
    return static_cast<C>(static_cast<U>(x) - static_cast<U>(y));
  } else {
    return x - y;
  }
}
template <typename C>
__device__ C WrapMultiply(C x, C y) {
  if constexpr (std::is_integral_v<C>) {
    using U = std::make_unsigned_t<C>;
    return static_cast<C>(static_cast<U>(x) * static_cast<U>(y));
  } else {
    return x * y;
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

}  // namespace interp::cuda
