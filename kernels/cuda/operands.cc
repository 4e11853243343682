#include "kernels/cuda/operands.h"

#include "kernels/math/binary.h"

namespace interp::cuda {
namespace {

std::vector<int64_t> PlacedDims(const Tensor& operand, const Shape& out, int axis) {
  const DimStrides strides = BroadcastStrides(operand, out.rank(), axis);
  std::vector<int64_t> dims;
  for (int d = 0; d < out.rank(); ++d) dims.push_back(strides[d] == 0 ? 1 : out[d]);
  return dims;
}

}  // namespace

BinaryOperandDims::BinaryOperandDims(const KernelContext& ctx)
    : x_(ctx.input(binary::kX).raw_data()), y_(ctx.input(binary::kY).raw_data()) {
  const Shape& out = ctx.output(binary::kOut).shape;
  const int axis = ctx.attrs<BinaryAttrs>().axis;
  x_dims_ = PlacedDims(ctx.input(binary::kX), out, axis);
  y_dims_ = PlacedDims(ctx.input(binary::kY), out, axis);
  out_dims_.assign(out.begin(), out.end());
}

std::vector<ElementwiseOperand> BinaryOperandDims::operands() const {
  return {{x_, x_dims_}, {y_, y_dims_}};
}

}  // namespace interp::cuda
