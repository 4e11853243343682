// Floats of any dtype in device memory, for kernels whose operands have dtypes of their own, and
// single numbers that lie there. Computed with as float32.
#pragma once

#include <cuda_runtime.h>

#include "core/dtype.h"
#include "core/tensor.h"

namespace interp::cuda {

struct Floats {
  const void* data = nullptr;
  DType dtype = DType::kFloat32;
};
inline Floats FloatsOf(const Tensor* tensor) {
  return tensor != nullptr ? Floats{tensor->raw_data(), tensor->dtype} : Floats{};
}

// What is read and where its new value goes: the same memory, as a rule.
struct FloatsUpdate {
  const void* in = nullptr;
  void* out = nullptr;
  DType dtype = DType::kFloat32;
};

// One float: that in device memory, where there is an address.
struct DeviceFloat {
  Floats data = {};
  float value = 0;
};

}  // namespace interp::cuda
