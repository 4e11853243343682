// One row of layer_norm and of the ops that have it inside.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/product/row_ops.h"
#include "kernels/util/arithmetic.h"

namespace interp::nn {

// y = (x - mean) * factor * scale + bias; null scale is 1, null bias 0.
template <typename T, typename C = ComputeType<T>>
void NormalizeRow(const T* x, int64_t n, C mean, C factor, const C* scale, const C* bias, T* y) {
  if (scale != nullptr && bias != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * factor * scale[i] + bias[i];
  } else if (scale != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * factor * scale[i];
  } else if (bias != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * factor + bias[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * factor;
  }
}

// Normalises x[0, n), which may be y. T is float or double.
template <typename T>
void LayerNormRow(const T* x, int64_t n, T epsilon, const T* scale, const T* bias, T* y) {
  const T mean = RowSum(x, n) / static_cast<T>(n);
  const T variance = RowSumSquares(x, n, mean) / static_cast<T>(n);
  NormalizeRow(x, n, mean, T{1} / std::sqrt(variance + epsilon), scale, bias, y);
}

}  // namespace interp::nn
