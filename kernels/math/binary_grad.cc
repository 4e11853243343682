#include "kernels/math/binary_grad.h"

#include "kernels/util/gradient_shape.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace binary_grad {
namespace {

// An operand that the program leaves out has the shape of Out@GRAD.
const Tensor& OperandOr(const OpContext& ctx, int slot) {
  const Tensor* operand = ctx.optional_input(slot);
  return operand != nullptr ? *operand : ctx.input(kOutGrad);
}

// X@GRAD gets the LoD of `with_lod`, Y@GRAD that of Y.
absl::Status InferGradients(InferContext& ctx, const Tensor& with_lod) {
  const Tensor& x = OperandOr(ctx, kX);
  const Tensor& y = OperandOr(ctx, kY);
  INTERP_ASSIGN_OR_RETURN(const Shape shape,
                          BroadcastShapes(x.shape, y.shape, ctx.attrs<BinaryAttrs>().axis));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", shape));
  ctx.SetShape(kXGrad, x.shape);
  ctx.SetShape(kYGrad, y.shape);
  if (Tensor* const x_grad = ctx.optional_output(kXGrad)) ShareLod(with_lod, *x_grad);
  if (Tensor* const y_grad = ctx.optional_output(kYGrad)) ShareLod(y, *y_grad);
  return absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) { return InferGradients(ctx, ctx.input(kOutGrad)); }

}  // namespace

absl::Status InferWithLodOfX(InferContext& ctx) { return InferGradients(ctx, OperandOr(ctx, kX)); }

bool CoversOutput(const Tensor& operand, const Tensor& grad) {
  if (operand.shape == grad.shape) return operand.layout == grad.layout;
  const bool plain = operand.layout == Layout::kPlain && grad.layout == Layout::kPlain;
  return plain && operand.numel() == grad.numel();
}

ReducePlan PlanSum(const Side& side) {
  const int rank = side.grad->shape.rank();
  const Strides out = BroadcastStrides(*side.self_grad, rank, side.axis);
  DimSet reduced;
  for (int i = 0; i < rank; ++i) reduced[i] = out[i] == 0;
  return PlanReduce(*side.grad, reduced, out);
}

Side SideOf(KernelContext& ctx, int self, int other) {
  return {.self = &OperandOr(ctx, self),
          .other = &OperandOr(ctx, other),
          .grad = &ctx.input(kOutGrad),
          .self_grad = &ctx.output(self),
          .axis = ctx.attrs<BinaryAttrs>().axis,
          .num_threads = ctx.num_threads()};
}

}  // namespace binary_grad

OpDef PlainBinaryGradDef(absl::string_view type, bool values) {
  using binary_grad::kOutGrad;
  const int flags = values ? 0 : kOptional | kNoNeedBuffer;
  return OpDef{
      .type = type,
      .inputs = {{"X", flags}, {"Y", flags}, {"Out", kOptional | kNoNeedBuffer}, {"Out@GRAD"}},
      .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
      .parse = ParseAttrs<BinaryAttrs, ReadBinaryAttrs>,
      .infer = binary_grad::Infer,
      .layout = LayoutRule::kFollows,
      .inplace = {{kOutGrad, binary_grad::kXGrad}, {kOutGrad, binary_grad::kYGrad}}};
}

}  // namespace interp
