// The dtype of what normalisations keep beside their data.
#pragma once

#include "core/dtype.h"

namespace interp::nn {

// Parameters, statistics and their gradients have the dtype of the data; float32 beside bfloat16.
inline DType StatisticsDType(DType data) {
  return data == DType::kBFloat16 ? DType::kFloat32 : data;
}

}  // namespace interp::nn
