// Activations of recurrent gates and their derivatives. Included by `.cu` files alone.
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

}  // namespace interp::cuda
