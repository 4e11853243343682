// The part of CUDA that interp uses, for a C++ compiler: found before the real <cuda_runtime.h>, it
// lets `.cu` files and the host code around them compile and run where there is no GPU.
//
// Names, values and meanings are those of the CUDA Runtime API and the CUDA C++ Programming Guide.
// Device code becomes plain functions, which docs/cuda.md says how we run. Shared memory has no
// keyword here: kernels declare it by the macros of kernels/cuda/launch.h.
#pragma once

#include <math.h>  // puts the overloads of <cmath> where device code expects them

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#define INTERP_CUDA_EMULATION 1

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
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorPeerAccessAlreadyEnabled = 704,
  cudaErrorMisalignedAddress = 716,
  cudaErrorLaunchFailure = 719,
  cudaErrorUnknown = 999,
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};
enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2,
};
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
};
inline constexpr unsigned cudaStreamDefault = 0;
inline constexpr unsigned cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDefault = 0;
inline constexpr unsigned cudaEventDisableTiming = 2;
inline constexpr unsigned cudaHostAllocDefault = 0;
inline constexpr unsigned cudaHostAllocPortable = 1;

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaHostFn_t = void (*)(void* data);

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int warpSize;
  int maxThreadsPerBlock;
  int major;
  int minor;
  int multiProcessorCount;
};
struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void* devicePointer;
  void* hostPointer;
};

extern "C" {
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);

cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);

cudaError_t cudaMalloc(void** address, size_t bytes);
cudaError_t cudaFree(void* address);
cudaError_t cudaMallocAsync(void** address, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void* address, cudaStream_t stream);
cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* address);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address);

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                size_t bytes, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* address, int value, size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end);
}

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
// `source` brought, a vote a bit for each lane that brought other than 0.
enum class WarpOperation : int8_t { kSync, kShuffle, kVote };
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
inline unsigned __ballot_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(),
                              unsigned line = __builtin_LINE()) {
  return static_cast<unsigned>(interp::cuda_emulation::Exchange(
      interp::cuda_emulation::WarpOperation::kVote, mask, predicate != 0 ? 1 : 0, 0, {file, line}));
}
inline int __any_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(),
                      unsigned line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate, file, line) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(),
                      unsigned line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate == 0 ? 1 : 0, file, line) == 0 ? 1 : 0;
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
template <typename T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return interp::cuda_emulation::Atomically(address, [value](T) { return value; });
}
template <typename T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return interp::cuda_emulation::Atomically(
      address, [expected, value](T old) { return old == expected ? value : old; });
}
template <typename T>
T __ldg(const T* address) {
  return *address;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float rsqrtf(float x) { return 1.0f / sqrt(x); }

// The real functions that take any pointer.
template <typename T>
cudaError_t cudaMalloc(T** address, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(address), bytes);
}
template <typename T>
cudaError_t cudaMallocAsync(T** address, size_t bytes, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void**>(address), bytes, stream);
}
template <typename T>
cudaError_t cudaHostAlloc(T** address, size_t bytes, unsigned flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(address), bytes, flags);
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
