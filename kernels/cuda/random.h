// Random numbers, those of the host, and ranges of integers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/random_numbers.h"

namespace interp::cuda {

struct UniformArguments {
  RandomNumbers random = {};
  // Other than 0: elements take the numbers of a std::mt19937_64 of that seed, one after the other.
  int32_t seed = 0;
  float min = 0;
  float max = 1;
  // Elements 0, diag_stride, 2 diag_stride, ..., `diag_num` of them, are diag_val.
  int64_t diag_num = 0;
  int64_t diag_stride = 1;
  float diag_val = 1;
  void* out = nullptr;
  int64_t size = 0;
};

// Numbers spread evenly over [min, max), to the last bit those of the host's uniform_random. Of
// float32, float64, float16 or bfloat16. Enqueued on `stream`.
absl::Status DrawUniform(DType dtype, const UniformArguments& arguments, cudaStream_t stream);

struct NormalArguments {
  RandomNumbers random = {};
  int32_t seed = 0;  // as that of UniformArguments
  float mean = 0;
  float deviation = 1;
  void* out = nullptr;
  int64_t size = 0;
};

// Normal numbers, those of the host's gaussian_random up to the rounding of logarithms, sines and
// cosines. Of float32 or float64. Enqueued on `stream`.
absl::Status DrawNormal(DType dtype, const NormalArguments& arguments, cudaStream_t stream);

struct IntegersArguments {
  RandomNumbers random = {};
  int64_t low = 0;
  uint64_t range = 1;  // how many numbers there are, from `low` on
  void* out = nullptr;
  int64_t size = 0;
};

// Integers that are all equally likely, those of the host's randint without a seed. Of int32 or
// int64. Enqueued on `stream`.
absl::Status DrawIntegers(DType dtype, const IntegersArguments& arguments, cudaStream_t stream);

// *out = the number other than 0 that the host's seed draws. Enqueued on `stream`.
absl::Status DrawSeed(const RandomNumbers& random, int32_t* out, cudaStream_t stream);

// out[i] = start + i step for i in [0, size), with wrap-around. Of int32 or int64. Enqueued on
// `stream`.
absl::Status FillRange(DType dtype, int64_t start, int64_t step, void* out, int64_t size,
                       cudaStream_t stream);

}  // namespace interp::cuda
