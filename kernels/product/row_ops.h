// Reductions over contiguous elements, in vectors: the compiler must not reorder floating-point
// sums by itself. The order depends on the length only.
#pragma once

#include <cstdint>

#include "core/float16.h"
#include "kernels/product/gemm.h"

namespace interp::nn {

namespace row_internal {

// Folds step(acc, x[i]) over all i; `merge` joins two accumulators.
template <typename T, typename Step, typename Merge>
T Fold(const T* x, int64_t n, T start, const Step& step, const Merge& merge) {
  using V = typename VectorOf<T>::type;
  using U = typename VectorOf<T>::unaligned;
  constexpr int kLanes = VectorOf<T>::kLanes;
  constexpr int kSums = 4;  // hides the latency of a step
  T total = start;
  int64_t i = 0;
  if (n >= kLanes) {
    V sums[kSums];
    for (V& sum : sums) sum = V{} + start;
    for (; i + kSums * kLanes <= n; i += kSums * kLanes) {
      for (int s = 0; s < kSums; ++s) {
        const V value = *reinterpret_cast<const U*>(x + i + s * kLanes);
        sums[s] = step(sums[s], value);
      }
    }
    for (; i + kLanes <= n; i += kLanes) {
      const V value = *reinterpret_cast<const U*>(x + i);
      sums[0] = step(sums[0], value);
    }
    sums[0] = merge(merge(sums[0], sums[1]), merge(sums[2], sums[3]));
    total = merge(total, FoldLanes<T>(sums[0], merge));
  }
  for (; i < n; ++i) total = step(total, x[i]);
  return total;
}

}  // namespace row_internal

template <typename T>
T RowSum(const T* x, int64_t n) {
  const auto add = [](auto a, auto b) { return a + b; };
  return row_internal::Fold(x, n, T{0}, add, add);
}

// Sum of (x - center)^2.
template <typename T>
T RowSumSquares(const T* x, int64_t n, T center) {
  const auto step = [center](auto sum, auto v) { return sum + (v - center) * (v - center); };
  return row_internal::Fold(x, n, T{0}, step, [](auto a, auto b) { return a + b; });
}

namespace row_internal {

// The sum of term(x[i]) over all i, for rows of 16-bit floats.
template <typename T, typename Term>
float SumInFloat(const T* x, int64_t n, const Term& term) {
  constexpr int64_t kLanes = 64;
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] += term(static_cast<float>(x[i + j]));
  }
  for (int64_t j = 0; i + j < n; ++j) lanes[j] += term(static_cast<float>(x[i + j]));
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  }
  return lanes[0];
}

}  // namespace row_internal

inline float RowSum(const bfloat16* x, int64_t n) {
  return row_internal::SumInFloat(x, n, [](float v) { return v; });
}
inline float RowSumSquares(const bfloat16* x, int64_t n, float center) {
  return row_internal::SumInFloat(x, n, [center](float v) { return (v - center) * (v - center); });
}

// The largest element; NaN elements are skipped. REQUIRES: n > 0.
template <typename T>
T RowMax(const T* x, int64_t n) {
  const auto larger = [](auto a, auto b) { return b > a ? b : a; };
  return row_internal::Fold(x, n, x[0], larger, larger);
}

}  // namespace interp::nn
