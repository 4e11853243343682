// How kernels read and write Floats. Included by `.cu` files alone.
#pragma once

#include "kernels/cuda/floats.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {

// All threads of a warp take the same branch.
__device__ inline float LoadFloat(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kFloat64:
      return static_cast<float>(static_cast<const double*>(data)[i]);
    case DType::kFloat16:
      return ToCompute(static_cast<const __half*>(data)[i]);
    case DType::kBFloat16:
      return ToCompute(static_cast<const __nv_bfloat16*>(data)[i]);
    default:
      return static_cast<const float*>(data)[i];
  }
}
__device__ inline void StoreFloat(float value, DType dtype, void* data, int64_t i) {
  switch (dtype) {
    case DType::kFloat64:
      static_cast<double*>(data)[i] = value;
      break;
    case DType::kFloat16:
      static_cast<__half*>(data)[i] = FromCompute<__half>(value);
      break;
    case DType::kBFloat16:
      static_cast<__nv_bfloat16*>(data)[i] = FromCompute<__nv_bfloat16>(value);
      break;
    default:
      static_cast<float*>(data)[i] = value;
  }
}
__device__ inline float Load(const DeviceFloat& number) {
  return number.data.data != nullptr ? LoadFloat(number.data.data, number.data.dtype, 0)
                                     : number.value;
}

}  // namespace interp::cuda
