// The activations that fused ops apply to a product or a convolution, as steps of an element-wise
// chain.
#pragma once

#include <vector>

#include "kernels/cuda/elementwise.h"
#include "kernels/nn/fused_activation.h"

namespace interp::cuda {

// Whether there are such steps: for all but hard_swish with a slope and offset of its own.
bool TakesActivation(const nn::FusedActivation& activation);

// Adds them, none for no activation. REQUIRES: TakesActivation.
void AppendActivation(const nn::FusedActivation& activation, std::vector<ElementwiseStep>& steps);

}  // namespace interp::cuda
