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
absl::Status FillAs(uint64_t bits, void* out, int64_t count, cudaStream_t stream) {
  return Launch(FillElements<T>, BlocksFor(count, kBlockThreads), kBlockThreads,
                /*shared_bytes=*/0, stream, static_cast<T>(bits), static_cast<T*>(out), count);
}

// A float as an integer of 32 or 64 bits, as x86 processors convert.
template <typename Wide, typename C>
__device__ Wide ToInteger(C value) {
  constexpr C kLimit = sizeof(Wide) == 8 ? C(0x1p63) : C(0x1p31);
  return value >= -kLimit && value < kLimit ? static_cast<Wide>(value)
                                            : std::numeric_limits<Wide>::min();
}

template <typename To, typename From>
__device__ To Convert(From from) {
  const auto value = ToCompute(from);
  using C = std::remove_const_t<decltype(value)>;
  if constexpr (std::is_same_v<To, bool>) {
    return value != C{0};
  } else if constexpr (std::is_integral_v<To> && !std::is_integral_v<C>) {
    return static_cast<To>(ToInteger<std::conditional_t<sizeof(To) == 8, int64_t, int32_t>>(value));
  } else {
    return FromCompute<To>(static_cast<ComputeType<To>>(value));
  }
}

template <typename From, typename To>
__global__ void __launch_bounds__(kBlockThreads)
    CastElements(const From* x, To* out, int64_t count) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    out[i] = (Convert<To>)(x[i]);  // not the one of the host
  }
}

template <typename Function>
absl::Status WithElements(DType dtype, Function function) {
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
      return WithNumbers("a cast", dtype, function);
  }
}

}  // namespace

absl::Status Fill(int element_bytes, uint64_t bits, void* out, int64_t count, cudaStream_t stream) {
  if (count == 0) return absl::OkStatus();
  switch (element_bytes) {
    case 1:
      return FillAs<uint8_t>(bits, out, count, stream);
    case 2:
      return FillAs<uint16_t>(bits, out, count, stream);
    case 4:
      return FillAs<uint32_t>(bits, out, count, stream);
    case 8:
      return FillAs<uint64_t>(bits, out, count, stream);
    default:
      return Unimplemented("a fill of elements of ", element_bytes, " bytes");
  }
}

absl::Status Cast(DType from, DType to, const void* x, void* out, int64_t count,
                  cudaStream_t stream) {
  return WithElements(from, [&](auto from_type) {
    return WithElements(to, [&](auto to_type) -> absl::Status {
      using From = typename decltype(from_type)::type;
      using To = typename decltype(to_type)::type;
      if (count == 0) return absl::OkStatus();
      return Launch(CastElements<From, To>, BlocksFor(count, kBlockThreads), kBlockThreads,
                    /*shared_bytes=*/0, stream, static_cast<const From*>(x), static_cast<To*>(out),
                    count);
    });
  });
}

}  // namespace interp::cuda
