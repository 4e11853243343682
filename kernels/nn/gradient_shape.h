// What the gradient kernels of this folder check of the gradients they are given.
#pragma once

#include "absl/strings/string_view.h"
#include "core/op_context.h"
#include "core/status.h"

namespace interp::nn {

// Error unless `gradient`, input `name`, has the shape of what it is the gradient of. One element
// counts as one element, [1] or []: programs of different ages say it differently.
inline absl::Status CheckGradient(const Tensor& gradient, absl::string_view name,
                                  const Shape& expected) {
  if (gradient.shape == expected || (gradient.numel() == 1 && expected.numel() == 1)) {
    return absl::OkStatus();
  }
  return InvalidArgument("input '", name, "' has shape ", ToString(gradient.shape), ", expected ",
                         ToString(expected));
}

// The memory of an optional argument, or null.
template <typename T>
const T* DataOrNull(const Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->data<T>();
}
template <typename T>
T* DataOrNull(Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->mutable_data<T>();
}

}  // namespace interp::nn
