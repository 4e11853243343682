// Operands of binary ops as element-wise kernels take them.
#pragma once

#include "core/op_context.h"
#include "kernels/cuda/elementwise.h"

namespace interp::cuda {

// X and Y of a binary op, whose lower rank is placed by attribute `axis`: their dimensions where
// the kernels want them, 1 where an operand is repeated.
class BinaryOperandDims {
 public:
  // REQUIRES: attributes are BinaryAttrs (kernels/math/binary.h) and Out has the broadcast shape.
  explicit BinaryOperandDims(const KernelContext& ctx);

  std::vector<ElementwiseOperand> operands() const;
  absl::Span<const int64_t> out_dims() const { return out_dims_; }

 private:
  const void* x_;
  const void* y_;
  std::vector<int64_t> x_dims_;
  std::vector<int64_t> y_dims_;
  std::vector<int64_t> out_dims_;
};

}  // namespace interp::cuda
