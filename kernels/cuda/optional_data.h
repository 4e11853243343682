// The memory of tensors that an op may lack.
#pragma once

#include "core/tensor.h"

namespace interp::cuda {

// Null where there is no tensor.
inline const void* ReadFrom(const Tensor* tensor) {
  return tensor != nullptr ? tensor->raw_data() : nullptr;
}
inline void* WriteTo(Tensor* tensor) {
  return tensor != nullptr ? tensor->mutable_raw_data() : nullptr;
}

}  // namespace interp::cuda
