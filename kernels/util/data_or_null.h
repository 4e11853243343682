// DataOrNull: the memory of optional arguments.
#pragma once

#include "core/tensor.h"

namespace interp {

// The memory of an optional argument, or null.
template <typename T>
const T* DataOrNull(const Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->data<T>();
}
template <typename T>
T* DataOrNull(Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->mutable_data<T>();
}

}  // namespace interp
