// The step of lamb.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "core/status.h"
#include "kernels/cuda/optimizer.h"

namespace interp::cuda {

struct LambNumbers {
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
  float decay = 0;
  bool always_adapt = false;  // the rate by the norms, also without decay
};

// Scratch memory of a step.
size_t LambWorkspaceBytes();

// A step of one parameter by the formulas of the host (kernels/optimizer/lamb.cc): the states are
// its two moments, and the powers of betas advance. The bits depend on nothing but the inputs.
// Enqueued on `stream`.
absl::Status UpdateByLamb(const LambNumbers& numbers, const UpdateTask& task, void* workspace,
                          cudaStream_t stream);

}  // namespace interp::cuda
