// where_grad: X@GRAD = Out@GRAD where Condition holds, Y@GRAD where it does not; 0 elsewhere.
#include "core/op_def.h"
#include "kernels/util/indices.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kOutGrad = 0;
constexpr int kCondition = 1;
constexpr int kX = 2;
constexpr int kXGrad = 0;
constexpr int kYGrad = 1;

absl::Status InferWhereGrad(InferContext& ctx) {
  const Tensor& condition = ctx.input(kCondition);
  const Shape& shape = ctx.input(kOutGrad).shape;
  if (condition.dtype != DType::kBool || !(condition.shape == shape)) {
    return InvalidArgument("'Condition' is ", DescribeType(condition),
                           ", expected bool in the shape of 'Out@GRAD', ", ToString(shape));
  }
  ctx.SetShape(kXGrad, shape);
  ctx.SetShape(kYGrad, shape);
  // Of the input before each one's own, as Paddle does.
  Tensor* const x_grad = ctx.optional_output(kXGrad);
  if (x_grad != nullptr) ShareLod(condition, *x_grad);
  const Tensor* const x = ctx.optional_input(kX);
  Tensor* const y_grad = ctx.optional_output(kYGrad);
  if (x != nullptr && y_grad != nullptr) ShareLod(*x, *y_grad);
  return absl::OkStatus();
}

// Sets `to` to `from` where the condition is `wanted`.
void Choose(const KernelContext& ctx, bool wanted, const Tensor& from, Tensor& to) {
  const uint8_t* const condition = static_cast<const uint8_t*>(ctx.input(kCondition).raw_data());
  WithElementSize(from.dtype, [&](auto element) {
    using Element = decltype(element);
    const Element* const in = static_cast<const Element*>(from.raw_data());
    Element* const out = static_cast<Element*>(to.mutable_raw_data());
    ParallelFor(ctx.num_threads(), from.numel(), kElementwiseGrain,
                [=](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    out[i] = (condition[i] != 0) == wanted ? in[i] : Element{};
                  }
                });
  });
}

absl::Status WhereGrad(KernelContext& ctx) {
  const Tensor& out_grad = ctx.input(kOutGrad);
  if (Tensor* const x_grad = ctx.optional_output(kXGrad)) Choose(ctx, true, out_grad, *x_grad);
  if (Tensor* const y_grad = ctx.optional_output(kYGrad)) Choose(ctx, false, out_grad, *y_grad);
  return absl::OkStatus();
}

constexpr int kUnused = kOptional | kNoNeedBuffer | kAnyDType | kAnyLayout;

INTERP_REGISTER_OP(OpDef{
    .type = "where_grad",
    .inputs = {{"Out@GRAD"}, {"Condition", kAnyDType}, {"X", kUnused}, {"Y", kUnused}},
    .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
    .infer = InferWhereGrad,
    .kernels = {{DType::kUndefined, WhereGrad}},
});

}  // namespace
}  // namespace interp
