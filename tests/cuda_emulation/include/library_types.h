// Types that libraries of CUDA share, as far as interp uses them; see cuda_runtime.h.
#pragma once

// NOLINTBEGIN(readability-identifier-naming)
enum cudaDataType_t {
  CUDA_R_32F = 0,
  CUDA_R_64F = 1,
  CUDA_R_16F = 2,
  CUDA_R_16BF = 14,
};
using cudaDataType = cudaDataType_t;
// NOLINTEND(readability-identifier-naming)
