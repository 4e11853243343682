// How kernels are launched and declare shared memory, in a form that nvcc compiles for a GPU and a
// C++ compiler for its emulation (docs/cuda.md).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/device/cuda/cuda_error.h"
#include "core/status.h"

namespace interp::cuda {

#if defined(__CUDACC__) || defined(INTERP_CUDA_EMULATION)
// kernel<<<grid, block, shared_bytes, stream>>>(args...). The status tells whether it was enqueued.
template <typename... Params, typename... Args>
absl::Status Launch(void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared_bytes,
                    cudaStream_t stream, const Args&... args) {
  cudaGetLastError();  // of another call of this thread, which is not the launch's
#ifdef INTERP_CUDA_EMULATION
  cuda_emulation::LaunchKernel(kernel, grid, block, shared_bytes, stream, args...);
#else
  // clang-format off
  kernel<<<grid, block, shared_bytes, stream>>>(args...);
  // clang-format on
#endif
  return ToStatus(cudaGetLastError(), "cannot launch a kernel");
}
#endif

// INTERP_SHARED(float, tile, [32][33]): an array in the shared memory of the block, `tile`.
// INTERP_DYNAMIC_SHARED(float, rows): as many bytes as the launch asked for, `rows[]`.
#ifdef INTERP_CUDA_EMULATION
#define INTERP_SHARED(type, name, dims)                                                     \
  static const char interp_key_of_##name = 0;                                               \
  using interp_type_of_##name = type dims;                                                  \
  auto& name = *static_cast<interp_type_of_##name*>(::interp::cuda_emulation::SharedMemory( \
      &interp_key_of_##name, sizeof(interp_type_of_##name), #name))
#define INTERP_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(::interp::cuda_emulation::SharedMemory(nullptr, 0, #name))
#else
#define INTERP_SHARED(type, name, dims) __shared__ type name dims
#define INTERP_DYNAMIC_SHARED(type, name)                              \
  extern __shared__ __align__(16) unsigned char interp_shared_bytes[]; \
  type* const name = reinterpret_cast<type*>(interp_shared_bytes)
#endif

// Before a loop of fixed length whose arrays are to stay in registers.
#ifdef __CUDACC__
#define INTERP_UNROLL _Pragma("unroll")
#else
#define INTERP_UNROLL
#endif

// The threads of a block where nothing speaks for another number.
inline constexpr int kBlockThreads = 256;
// More blocks than keep a GPU busy are not worth their start: kernels loop instead. Under emulation
// small tests are to run these loops.
#ifdef INTERP_CUDA_EMULATION
inline constexpr int64_t kMostBlocks = 3;
#else
inline constexpr int64_t kMostBlocks = 4096;
#endif
// How many blocks do `work` pieces of work.
inline unsigned BlocksFor(int64_t work, int64_t work_per_block) {
  const int64_t blocks = (work + work_per_block - 1) / work_per_block;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

#if defined(__CUDACC__) || defined(INTERP_CUDA_EMULATION)
// Launches a kernel whose threads loop over `elements` elements, with no shared memory. Nothing for
// none.
template <typename... Params, typename... Args>
absl::Status LaunchElements(void (*kernel)(Params...), int64_t elements, cudaStream_t stream,
                            const Args&... args) {
  if (elements == 0) return absl::OkStatus();
  return Launch(kernel, BlocksFor(elements, kBlockThreads), kBlockThreads, /*shared_bytes=*/0,
                stream, args...);
}
#endif

}  // namespace interp::cuda
