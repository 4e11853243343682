// Integers of a dtype that is known at run time. Included by `.cu` files alone.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// Element `i` of int32 or int64.
__device__ inline int64_t IntegerAt(const void* data, DType dtype, int64_t i) {
  return dtype == DType::kInt32 ? static_cast<const int32_t*>(data)[i]
                                : static_cast<const int64_t*>(data)[i];
}

// Unimplemented unless `dtype`, of the numbers `what`, is one of the two.
inline absl::Status CheckIntegers(absl::string_view what, DType dtype) {
  if (dtype == DType::kInt32 || dtype == DType::kInt64) return absl::OkStatus();
  return Unimplemented(what, " of ", Name(dtype), " on a GPU");
}

}  // namespace interp::cuda
