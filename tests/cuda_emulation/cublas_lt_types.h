// What the handles and descriptors of the emulated cuBLASLt hold.
#pragma once

#include <cublasLt.h>

#include <cstdint>

// Names of cuBLASLt. NOLINTBEGIN(readability-identifier-naming)
struct cublasLtContext {
  int device;
};
struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType_t type;
  uint64_t rows;
  uint64_t cols;
  int64_t ld;
  int32_t batch_count = 1;
  int64_t batch_step = 0;
};
struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int32_t trans_a = CUBLAS_OP_N;
  int32_t trans_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct cublasLtMatmulPreferenceOpaque_t {
  uint64_t most_workspace = 0;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignments[4] = {256, 256, 256, 256};  // of A, B, C, D
};
// NOLINTEND(readability-identifier-naming)
