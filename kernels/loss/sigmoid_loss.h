// What sigmoid_cross_entropy_with_logits and its gradient have in common.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/loss/loss_attrs.h"

namespace interp {

// What Out is divided by. Where no label counts that is 0, and Out NaN, as in Paddle.
template <typename T>
T CountLabels(const T* label, int64_t n, int32_t ignore_index) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    count += std::abs(label[i] - static_cast<T>(ignore_index)) > T(1e-6) ? 1 : 0;
  }
  return static_cast<T>(count);
}

}  // namespace interp
