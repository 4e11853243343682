// Activations and clips of recurrent gates and their derivatives. Included by `.cu` files alone.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/cuda/step_rows.h"

namespace interp::cuda {

template <typename T>
__device__ T Activate(GateActivation activation, T x) {
  switch (activation) {
    case GateActivation::kSigmoid:
      return T{1} / (T{1} + exp(-x));
    case GateActivation::kTanh:
      return tanh(x);
    case GateActivation::kRelu:
      return x > T{0} ? x : T{0};
    default:
      return x;
  }
}

// `grad` times the derivative where the activation gave `y`.
template <typename T>
__device__ T ActivateBack(GateActivation activation, T y, T grad) {
  switch (activation) {
    case GateActivation::kSigmoid:
      return grad * y * (T{1} - y);
    case GateActivation::kTanh:
      return grad * (T{1} - y * y);
    case GateActivation::kRelu:
      return y > T{0} ? grad : T{0};
    default:
      return grad;
  }
}

// x limited to [-limit, limit]; unchanged where the limit is not positive.
template <typename T>
__device__ T ClipTo(T limit, T x) {
  if (!(limit > T{0})) return x;
  const T low = x < -limit ? -limit : x;
  return low > limit ? limit : low;
}

// Whether a gradient ends at `y`, which ClipTo gave.
template <typename T>
__device__ bool ClipEndsAt(T limit, T y) {
  return limit > T{0} && !(fabs(y) < limit);
}

}  // namespace interp::cuda
