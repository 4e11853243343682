// The rows of gradients that integers have, too: a float may be cast to one and back.
#pragma once

#include <cstdint>
#include <vector>

#include "core/op_def.h"

namespace interp {

// The rows of float32, float64, int32 and int64, where row.operator()<T>() is the kernel of T:
//
//   .kernels = GradientRows([]<typename T>() -> KernelFn { return CumSumGrad<T>; })
template <typename Row>
std::vector<KernelDef> GradientRows(const Row& row) {
  return {{DType::kFloat32, row.template operator()<float>()},
          {DType::kFloat64, row.template operator()<double>()},
          {DType::kInt32, row.template operator()<int32_t>()},
          {DType::kInt64, row.template operator()<int64_t>()}};
}

}  // namespace interp
