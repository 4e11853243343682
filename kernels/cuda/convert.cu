#include <cstring>

#include "kernels/cuda/convert.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(kBlockThreads) FillElements(T value, T* out, int64_t count) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    out[i] = value;
  }
}

template <typename T>
absl::Status FillAs(const void* value, void* out, int64_t count, cudaStream_t stream) {
  T element;
  std::memcpy(&element, value, sizeof(T));
  return LaunchElements(FillElements<T>, count, stream, element, static_cast<T*>(out), count);
}

template <typename F>
struct alignas(2 * sizeof(F)) Complex {
  F real;
  F imaginary;
};
template <typename T>
constexpr bool kIsPair = std::is_same_v<T, Complex<float>> || std::is_same_v<T, Complex<double>>;

// Of a real number.
template <typename To, typename From>
__device__ To ConvertReal(From from) {
  const auto value = ToCompute(from);
  using C = std::remove_const_t<decltype(value)>;
  if constexpr (std::is_same_v<To, bool>) {
    return value != C{0};
  } else if constexpr (std::is_integral_v<To> && !std::is_integral_v<C>) {
    return Truncate<To>(value);
  } else {
    return FromCompute<To>(static_cast<ComputeType<To>>(value));
  }
}

// Of a complex number the real part stays; it is true unless it is 0.
template <typename To, typename From>
__device__ To ConvertElement(From from) {
  if constexpr (kIsPair<To> && kIsPair<From>) {
    using F = decltype(To().real);
    return To{static_cast<F>(from.real), static_cast<F>(from.imaginary)};
  } else if constexpr (kIsPair<To>) {
    using F = decltype(To().real);
    return To{ConvertReal<F>(from), F{0}};
  } else if constexpr (std::is_same_v<To, bool> && kIsPair<From>) {
    return from.real != 0 || from.imaginary != 0;
  } else if constexpr (kIsPair<From>) {
    return ConvertReal<To>(from.real);
  } else {
    return ConvertReal<To>(from);
  }
}

template <typename From, typename To>
__global__ void __launch_bounds__(kBlockThreads)
    CastElements(const From* x, To* out, int64_t count) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    out[i] = ConvertElement<To>(x[i]);
  }
}

// The storage type of every dtype that casts have.
template <typename Function>
absl::Status WithElements(DType dtype, Function function) {
  if (dtype == DType::kComplex64) return function(Type<Complex<float>>());
  if (dtype == DType::kComplex128) return function(Type<Complex<double>>());
  return WithScalars("a cast", dtype, function);
}

}  // namespace

absl::Status FillWith(int element_bytes, const void* value, void* out, int64_t count,
                      cudaStream_t stream) {
  if (count == 0) return absl::OkStatus();
  switch (element_bytes) {
    case 1:
      return FillAs<uint8_t>(value, out, count, stream);
    case 2:
      return FillAs<uint16_t>(value, out, count, stream);
    case 4:
      return FillAs<uint32_t>(value, out, count, stream);
    case 8:
      return FillAs<uint2>(value, out, count, stream);
    case 16:
      return FillAs<uint4>(value, out, count, stream);
    default:
      return Unimplemented("a fill of elements of ", element_bytes, " bytes");
  }
}

absl::Status Fill(int element_bytes, uint64_t bits, void* out, int64_t count, cudaStream_t stream) {
  if (element_bytes > 8) {
    return Unimplemented("a fill of elements of ", element_bytes, " bytes by 8");
  }
  return FillWith(element_bytes, &bits, out, count, stream);  // both worlds are little-endian
}

absl::Status Cast(DType from, DType to, const void* x, void* out, int64_t count,
                  cudaStream_t stream) {
  return WithElements(from, [&](auto from_type) {
    return WithElements(to, [&](auto to_type) -> absl::Status {
      using From = typename decltype(from_type)::type;
      using To = typename decltype(to_type)::type;
      if (count == 0) return absl::OkStatus();
      return LaunchElements(CastElements<From, To>, count, stream, static_cast<const From*>(x),
                            static_cast<To*>(out), count);
    });
  });
}

}  // namespace interp::cuda
