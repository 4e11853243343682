// What ops that run blocks have in common.
#pragma once

#include "core/op_def.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp::control_flow {

// One kernel serves all dtypes, and outputs are what the block makes them.
inline DType NoKernelDType(const DTypeContext&) { return DType::kUndefined; }
inline absl::Status InferNothing(InferContext&) { return absl::OkStatus(); }

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
