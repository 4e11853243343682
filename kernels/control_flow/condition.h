// Conditions of control-flow ops.
#pragma once

#include "core/status.h"
#include "core/tensor.h"

namespace interp::control_flow {

// The value of a condition: one element of bool in host memory. `slot` names it in errors.
inline absl::StatusOr<bool> ReadCondition(const Tensor& condition, absl::string_view slot) {
  if (condition.dtype == DType::kBool && condition.numel() == 1 && condition.has_memory())
      [[likely]] {
    return *condition.data<bool>();
  }
  return InvalidArgument("input '", slot, "' is ", DescribeType(condition),
                         condition.has_memory() ? "" : " without a value",
                         ", expected one element of bool");
}

}  // namespace interp::control_flow
