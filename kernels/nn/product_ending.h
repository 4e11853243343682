// What follows the sums of a product, taken apart.
#pragma once

#include "kernels/nn/fused_activation.h"
#include "kernels/nn/gemm.h"

namespace interp::nn {

// `tile` is done to sums while they are in the L1 cache, `rest` after it.
struct ProductEnding {
  GemmEnding<float> tile;
  FusedActivation rest;
};

// activation(sum + bias); `bias` is null where there is none.
inline ProductEnding SplitEnding(const FusedActivation& activation, const float* bias) {
  ProductEnding ending = {.tile = {.bias = bias}, .rest = activation};
  const bool caps = activation.kind == ActivationKind::kRelu6 && activation.alpha >= 0;
  if (activation.kind != ActivationKind::kRelu && !caps) return ending;
  ending.rest = {};
  ending.tile.low = 0;
  if (caps) ending.tile.high = activation.alpha;
  return ending;
}

}  // namespace interp::nn
