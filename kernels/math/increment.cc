// increment: Out = X + step for a tensor of one element. Integers take the truncated step.
#include "kernels/math/increment.h"

#include "kernels/math/unary.h"

namespace interp {
namespace {

absl::Status InferIncrement(InferContext& ctx) {
  const Tensor& x = ctx.input(unary::kX);
  if (x.numel() != 1) {
    return InvalidArgument("input 'X' is ", DescribeType(x), ", expected one element");
  }
  return InferUnary(ctx);
}

template <typename T>
absl::Status Increment(KernelContext& ctx) {
  const T step = Convert<T>(ctx.attrs<IncrementAttrs>().step);
  *ctx.output(unary::kOut).mutable_data<T>() = WrapAdd(*ctx.input(unary::kX).data<T>(), step);
  return absl::OkStatus();
}

// Not a gradient: brings a counter back to what it was, so that the gradients of a loop find the
// entries of arrays that its steps used.
absl::Status MakeDecrement(GradientMaker& maker) {
  Op& decrement = maker.Add("increment");
  AddInput(decrement, "X", maker.Arguments("Out"));
  AddOutput(decrement, "Out", maker.Arguments("X"));
  decrement.attrs = maker.op().attrs;
  AttrReader attrs(maker.op());
  SetAttr(decrement, "step", -IncrementAttrs::Read(attrs).step);
  return attrs.status();
}

OpDef IncrementDef() {
  OpDef def = PlainUnaryDef("increment", {{DType::kFloat32, Increment<float>},
                                          {DType::kFloat64, Increment<double>},
                                          {DType::kInt32, Increment<int32_t>},
                                          {DType::kInt64, Increment<int64_t>}});
  def.parse = ParseAttrs<IncrementAttrs, IncrementAttrs::Read>;
  def.gradient = {.make = MakeDecrement};
  def.infer = InferIncrement;
  return def;
}

INTERP_REGISTER_OP(IncrementDef());

}  // namespace
}  // namespace interp
