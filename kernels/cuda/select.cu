#include <algorithm>
#include <cstring>

#include "kernels/cuda/element_bytes.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/select.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    Choose(const bool* condition, const T* x, const T* y, T* out, int64_t count) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    const T* const from = condition[i] ? x : y;
    out[i] = from != nullptr ? from[i] : T{};
  }
}

template <typename T, typename Index>
__global__ void __launch_bounds__(kBlockThreads)
    SetHot(const Index* x, int64_t count, int64_t depth, T one, T* out) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count * depth;
       i += int64_t{gridDim.x} * blockDim.x) {
    out[i] = static_cast<int64_t>(x[i / depth]) == i % depth ? one : T{};
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SetBelow(const int64_t* lengths, int64_t count, int64_t width, T one, T* out) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count * width;
       i += int64_t{gridDim.x} * blockDim.x) {
    out[i] = i % width < lengths[i / width] ? one : T{};
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads) CopyHalf(const T* x, const Halves halves, T* out) {
  const int64_t count = halves.matrices * halves.rows * halves.columns;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t beyond = i % halves.columns - i / halves.columns % halves.rows - halves.diagonal;
    out[i] = (halves.lower ? beyond <= 0 : beyond >= 0) ? x[i] : T{};
  }
}

// The element whose first bytes are those of `bits`, and 0 the rest.
template <typename T>
T ElementOf(uint64_t bits) {
  T element = {};
  std::memcpy(&element, &bits, std::min(sizeof(T), sizeof(bits)));
  return element;
}

template <typename T, typename Index>
absl::Status LaunchHot(const void* x, int64_t count, int64_t depth, uint64_t one, void* out,
                       cudaStream_t stream) {
  return LaunchElements(SetHot<T, Index>, count * depth, stream, static_cast<const Index*>(x),
                        count, depth, ElementOf<T>(one), static_cast<T*>(out));
}

}  // namespace

absl::Status Where(int element_bytes, const bool* condition, const void* x, const void* y,
                   void* out, int64_t count, cudaStream_t stream) {
  return WithBytes(element_bytes, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchElements(Choose<T>, count, stream, condition, static_cast<const T*>(x),
                          static_cast<const T*>(y), static_cast<T*>(out), count);
  });
}

absl::Status OneHot(DType index_dtype, const void* x, int64_t count, int64_t depth,
                    int element_bytes, uint64_t one, void* out, cudaStream_t stream) {
  if (index_dtype != DType::kInt32 && index_dtype != DType::kInt64) {
    return Unimplemented("one_hot of ", Name(index_dtype), " on a GPU");
  }
  if (count * depth == 0) return absl::OkStatus();
  return WithBytes(element_bytes, [&](auto type) {
    using T = typename decltype(type)::type;
    return index_dtype == DType::kInt32 ? LaunchHot<T, int32_t>(x, count, depth, one, out, stream)
                                        : LaunchHot<T, int64_t>(x, count, depth, one, out, stream);
  });
}

absl::Status MaskLengths(const int64_t* lengths, int64_t count, int64_t width, int element_bytes,
                         uint64_t one, void* out, cudaStream_t stream) {
  if (count * width == 0) return absl::OkStatus();
  return WithBytes(element_bytes, [&](auto type) {
    using T = typename decltype(type)::type;
    return Launch(SetBelow<T>, BlocksFor(count * width, kBlockThreads), kBlockThreads,
                  /*shared_bytes=*/0, stream, lengths, count, width, ElementOf<T>(one),
                  static_cast<T*>(out));
  });
}

absl::Status KeepHalf(int element_bytes, const void* x, const Halves& halves, void* out,
                      cudaStream_t stream) {
  const int64_t count = halves.matrices * halves.rows * halves.columns;
  return WithBytes(element_bytes, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchElements(CopyHalf<T>, count, stream, static_cast<const T*>(x), halves,
                          static_cast<T*>(out));
  });
}

}  // namespace interp::cuda
