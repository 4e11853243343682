// Operands of binary ops as element-wise kernels take them.
#pragma once

#include "core/op_context.h"
#include "kernels/cuda/elementwise.h"

namespace interp::cuda {

// The dims of an operand beside those of the result `out`, 1 where it is repeated. `axis` places an
// operand of lower rank, as attribute `axis` of binary ops does.
Shape AlignedDims(const Tensor& operand, const Shape& out, int axis);

// X and Y of a binary op with their aligned dims.
class BinaryOperandDims {
 public:
  // REQUIRES: attributes are BinaryAttrs (kernels/math/binary.h) and Out has the broadcast shape.
  explicit BinaryOperandDims(const KernelContext& ctx);

  std::vector<ElementwiseOperand> operands() const;
  absl::Span<const int64_t> out_dims() const { return out_.dims(); }

 private:
  const Tensor& x_;
  const Tensor& y_;
  const Shape out_;
  const Shape x_dims_;
  const Shape y_dims_;
};

}  // namespace interp::cuda
