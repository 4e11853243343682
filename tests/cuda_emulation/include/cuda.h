// What interp uses of the CUDA Driver API, and the runtime's call that finds it; see
// cuda_runtime.h.
#pragma once

#include "tests/cuda_emulation/runtime_api.h"

// Names of CUDA. NOLINTBEGIN(readability-identifier-naming)

enum CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_INVALID_DEVICE = 101,
};
using CUdevice = int;

enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess = 0,
  cudaDriverEntryPointSymbolNotFound = 1,
  cudaDriverEntryPointVersionNotSufficent = 2,
};
inline constexpr unsigned cudaEnableDefault = 0;

extern "C" {
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active);
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long flags,  // NOLINT(*-runtime-int)
                                             cudaDriverEntryPointQueryResult* result);
}
// NOLINTEND(readability-identifier-naming)
