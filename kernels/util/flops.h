// For OpDef::flops: counts of floating-point operations. A multiplication and an addition are two.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/op_def.h"

namespace interp {

// Products of sizes that each fit 64 bits may not. REQUIRES: count >= 0.
inline int64_t ToFlops(double count) {
  constexpr double kMost = 0x1p62;
  return static_cast<int64_t>(std::min(count, kMost));
}

// `per_element` for each element of an output.
template <int kPerElement, int kOutput = 0>
int64_t FlopsPerElement(const OpContext& ctx) {
  const Tensor* out = ctx.optional_output(kOutput);
  return out == nullptr ? 0 : ToFlops(kPerElement * static_cast<double>(out->numel()));
}

// A product of each row of input kRows with input kWeight, kTimes over.
template <int kRows, int kWeight, int kTimes = 1>
int64_t ProductFlops(const OpContext& ctx) {
  return ToFlops(2.0 * kTimes * static_cast<double>(ctx.input(kWeight).numel()) *
                 static_cast<double>(ctx.input(kRows).shape[0]));
}

}  // namespace interp
