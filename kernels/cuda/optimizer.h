// Steps of optimizers: all parameters of an op in one launch.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/types/span.h"
#include "core/status.h"
#include "kernels/cuda/floats.h"

namespace interp::cuda {

// The formulas are those of the ops on the host (kernels/optimizer), in float32.
enum class UpdateRule : int8_t {
  kSgd,              // no state
  kMomentum,         // the velocity
  kNesterov,         // the velocity
  kAdam,             // two moments; adamw by `decay`
  kAdagrad,          // the moment
  kAdadelta,         // the mean squares of gradients and of updates
  kAdamax,           // the moment and the norm
  kRmsprop,          // the mean square and the moment
  kCenteredRmsprop,  // and the mean gradient
};
int StatesOf(UpdateRule rule);

inline constexpr int kMostStates = 3;

// One parameter. Learning rate and powers of betas lie on the GPU, of any dtype of floats.
struct UpdateTask {
  int64_t size = 0;
  FloatsUpdate param;
  FloatsUpdate master;  // float32 values of a parameter of 16 bits; `in` may be null
  FloatsUpdate states[kMostStates];
  Floats grad;
  Floats rate;                 // of kAdadelta it may not be there: 1
  FloatsUpdate beta_pows[2];   // of kAdam, one of kAdamax; `out` may be null: others advance them
  const bool* skip = nullptr;  // everything stays as it is where it is true
  float decay = 0;             // of kMomentum and kNesterov: added to the gradient
};

struct UpdateNumbers {
  // Of kAdam and kAdamax; of kMomentum mu; of kAdadelta rho; of kRmsprop momentum; of kAdagrad what
  // is kept.
  DeviceFloat beta1 = {};
  // Of kAdam and kAdamax; of kRmsprop decay; of kAdagrad the factor of the new square.
  DeviceFloat beta2 = {};
  DeviceFloat epsilon = {};  // but kSgd and kMomentum
  float decay = 0;           // of kAdam, in learning rates
  bool keep_pows = false;
};

// Runs a step on every task. Every element of an output is written after the same element of its
// input is read. Enqueued on `stream`.
absl::Status UpdateParameters(UpdateRule rule, const UpdateNumbers& numbers,
                              absl::Span<const UpdateTask> tasks, cudaStream_t stream);

}  // namespace interp::cuda
