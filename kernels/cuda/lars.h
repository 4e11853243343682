// The step of lars_momentum.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "core/status.h"
#include "kernels/cuda/optimizer.h"

namespace interp::cuda {

struct LarsNumbers {
  float mu = 0;
  float coefficient = 0;
  float epsilon = 0;
  float rescale = 1;  // of the gradient
};

// Scratch memory of a step.
size_t LarsWorkspaceBytes();

// A step of one parameter by the formulas of the host (kernels/optimizer/lars_momentum.cc): the
// state is the velocity, and UpdateTask::decay the parameter's. Enqueued on `stream`.
absl::Status UpdateByLars(const LarsNumbers& numbers, const UpdateTask& task, void* workspace,
                          cudaStream_t stream);

}  // namespace interp::cuda
