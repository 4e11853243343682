// The memory of optional arguments.
#pragma once

#include "core/op_def.h"

namespace interp {

// The memory of a tensor that may be null, or null.
template <typename T>
const T* DataOrNull(const Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->data<T>();
}
template <typename T>
T* DataOrNull(Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->mutable_data<T>();
}

// That of the tensor in a slot; null where the op lacks it.
template <typename T>
const T* InputOrNull(const KernelContext& ctx, int slot) {
  return DataOrNull<T>(ctx.optional_input(slot));
}
template <typename T>
T* OutputOrNull(const KernelContext& ctx, int slot) {
  return DataOrNull<T>(ctx.optional_output(slot));
}

// The same of any dtype.
inline const void* InputOrNull(const KernelContext& ctx, int slot) {
  const Tensor* const tensor = ctx.optional_input(slot);
  return tensor == nullptr ? nullptr : tensor->raw_data();
}
inline void* OutputOrNull(const KernelContext& ctx, int slot) {
  Tensor* const tensor = ctx.optional_output(slot);
  return tensor == nullptr ? nullptr : tensor->mutable_raw_data();
}

}  // namespace interp
