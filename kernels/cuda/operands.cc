#include "kernels/cuda/operands.h"

#include "kernels/math/binary.h"

namespace interp::cuda {

Shape AlignedDims(const Tensor& operand, const Shape& out, int axis) {
  const Strides strides = BroadcastStrides(operand, out.rank(), axis);
  Shape dims = out;
  for (int d = 0; d < out.rank(); ++d) {
    if (strides[d] == 0) dims[d] = 1;
  }
  return dims;
}

BinaryOperandDims::BinaryOperandDims(const KernelContext& ctx)
    : x_(ctx.input(binary::kX)),
      y_(ctx.input(binary::kY)),
      out_(ctx.output(binary::kOut).shape),
      x_dims_(AlignedDims(x_, out_, ctx.attrs<BinaryAttrs>().axis)),
      y_dims_(AlignedDims(y_, out_, ctx.attrs<BinaryAttrs>().axis)) {}

std::vector<ElementwiseOperand> BinaryOperandDims::operands() const {
  return {{x_.raw_data(), x_dims_.dims()}, {y_.raw_data(), y_dims_.dims()}};
}

}  // namespace interp::cuda
