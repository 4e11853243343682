#pragma once

#include "absl/strings/string_view.h"
#include "core/tensor.h"

namespace interp::recurrent {

// InvalidArgument unless the input called `name` has the shape `expected`.
inline absl::Status CheckInputShape(const Tensor& tensor, absl::string_view name,
                                    const Shape& expected) {
  if (tensor.shape == expected) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(tensor.shape), ", expected ",
                         ToString(expected));
}

}  // namespace interp::recurrent
