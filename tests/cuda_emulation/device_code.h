// The language of device code: what kernels are declared with and call; see include/cuda_runtime.h.
// Device code becomes plain functions, which grid.h says how we run.
// Long because what kernels may use is read in one place.
#pragma once

#include <math.h>  // puts the overloads of <cmath> where device code expects them

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/cuda_emulation/runtime_api.h"

// Names of CUDA. NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)

#define threadIdx (::interp::cuda_emulation::ThreadIndex())
#define blockIdx (::interp::cuda_emulation::BlockIndex())
#define blockDim (::interp::cuda_emulation::BlockSize())
#define gridDim (::interp::cuda_emulation::GridSize())
inline constexpr int warpSize = 32;

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}  // NOLINT
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

namespace interp::cuda_emulation {

// What device code asks of the thread that runs it. REQUIRES: called from device code.
uint3 ThreadIndex();
uint3 BlockIndex();
dim3 BlockSize();
dim3 GridSize();
int Lane();

// A line of device code; `file` has static storage.
struct SourcePlace {
  const char* file = "";
  unsigned line = 0;
};

// Blocks the thread until all of its block wait at this very place.
void Barrier(SourcePlace where);
// Blocks the thread until all lanes of `mask` do the same. A shuffle gives the `bits` that lane
// `source` brought.
enum class WarpOperation : int8_t { kSync, kShuffle };
uint64_t Exchange(WarpOperation operation, unsigned mask, uint64_t bits, int source,
                  SourcePlace where);
// Tells the shadow memory that an atomic operation follows.
void NoteAtomic(const void* address, size_t bytes);
// The shared memory of this block that `key` stands for, made when first asked for; `name` is for
// reports. Null is the key of the memory that the launch asked for.
void* SharedMemory(const void* key, size_t bytes, const char* name);

struct GridLaunch {
  const void* kernel = nullptr;  // the function, for its name
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;
  void (*run)(const void* arguments) = nullptr;  // one thread
  std::shared_ptr<const void> arguments;
  size_t argument_bytes = 0;
};
cudaError_t LaunchGrid(const GridLaunch& launch, cudaStream_t stream);

// kernel<<<grid, block, shared_bytes, stream>>>(args...).
template <typename... Params, typename... Args>
cudaError_t LaunchKernel(void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared_bytes,
                         cudaStream_t stream, Args&&... args) {
  struct Call {
    void (*kernel)(Params...);
    std::tuple<std::decay_t<Params>...> params;
  };
  auto call = std::make_shared<Call>(Call{kernel, {std::forward<Args>(args)...}});
  GridLaunch launch{.kernel = reinterpret_cast<const void*>(kernel),
                    .grid = grid,
                    .block = block,
                    .shared_bytes = shared_bytes,
                    .run =
                        [](const void* arguments) {
                          const Call& call = *static_cast<const Call*>(arguments);
                          std::apply(call.kernel, call.params);
                        },
                    .arguments = call,
                    .argument_bytes = sizeof(Call)};
  return LaunchGrid(launch, stream);
}

// Only the shadow memory is to see the operation, not the accesses that it is made of here.
template <typename T, typename Change>
__attribute__((no_sanitize_thread)) T Atomically(T* address, Change change) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "no GPU has such an atomic operation");
  NoteAtomic(address, sizeof(T));
  const T old = *address;
  *address = change(old);
  return old;
}

template <typename T>
T Shuffle(unsigned mask, T value, int source, SourcePlace where) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = Exchange(WarpOperation::kShuffle, mask, bits, source, where);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace interp::cuda_emulation

inline void __syncthreads(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  interp::cuda_emulation::Barrier({file, line});
}
inline void __syncwarp(unsigned mask = ~0u, const char* file = __builtin_FILE(),
                       unsigned line = __builtin_LINE()) {
  interp::cuda_emulation::Exchange(interp::cuda_emulation::WarpOperation::kSync, mask, 0, 0,
                                   {file, line});
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize,
              const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  const int first = interp::cuda_emulation::Lane() & ~(width - 1);
  return interp::cuda_emulation::Shuffle(mask, value, first | (source & (width - 1)), {file, line});
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                 const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  const int lane = interp::cuda_emulation::Lane();
  const int source = lane - static_cast<int>(delta);
  const bool inside = source >= (lane & ~(width - 1));
  return interp::cuda_emulation::Shuffle(mask, value, inside ? source : lane, {file, line});
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                   const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  const int lane = interp::cuda_emulation::Lane();
  const int source = lane + static_cast<int>(delta);
  const bool inside = source < (lane & ~(width - 1)) + width;
  return interp::cuda_emulation::Shuffle(mask, value, inside ? source : lane, {file, line});
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize,
                  const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  const int lane = interp::cuda_emulation::Lane();
  const int source = lane ^ bits;
  const bool inside = source < (lane & ~(width - 1)) + width;
  return interp::cuda_emulation::Shuffle(mask, value, inside ? source : lane, {file, line});
}

template <typename T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return interp::cuda_emulation::Atomically(address, [value](T old) { return old + value; });
}
template <typename T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return interp::cuda_emulation::Atomically(address,
                                            [value](T old) { return old < value ? value : old; });
}
template <typename T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return interp::cuda_emulation::Atomically(address,
                                            [value](T old) { return value < old ? value : old; });
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
