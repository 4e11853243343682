// Gradients of fused_elemwise_activation and fused_elemwise_add_activation: those of the outer
// function, then those of the inner one. IntermediateOut is computed again where it was not kept.
// Where there is no X, as Paddle's build strategies write relu(X + Y), Out stands for what is left
// of the sum: relu and scale have the same slope there.
#include "kernels/math/binary_grad.h"
#include "kernels/math/composed_activation.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kIntermediate = 2;
constexpr int kOutGrad = 3;
constexpr int kOut = 4;
constexpr int kXGrad = 0;
constexpr int kYGrad = 1;
constexpr int kIntermediateGrad = 2;

// X, or what has its shape.
const Tensor& XOf(const OpContext& ctx) {
  const Tensor* const x = ctx.optional_input(kX);
  return x != nullptr ? *x : ctx.input(kOutGrad);
}

bool DoesWithoutX(const OpContext& ctx) {
  const ComposedAttrs& attrs = ctx.attrs<ComposedAttrs>();
  return attrs.unary_outside && !attrs.multiplies && ctx.has_input(kOut) &&
         (attrs.unary == ComposedUnary::kRelu || attrs.unary == ComposedUnary::kScale);
}

absl::Status InferComposedGrad(InferContext& ctx) {
  const ComposedAttrs& attrs = ctx.attrs<ComposedAttrs>();
  if (!ctx.has_input(kX) && !DoesWithoutX(ctx)) {
    return InvalidArgument(
        "input 'X' is missing, which only relu and scale of X + Y with 'Out' do "
        "without");
  }
  const Shape& y = ctx.input(kY).shape;
  INTERP_ASSIGN_OR_RETURN(const Shape out, BroadcastShapes(XOf(ctx).shape, y, attrs.axis));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", out));
  const Shape& intermediate = attrs.unary_outside ? out : y;
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kIntermediate, "IntermediateOut", intermediate));
  ctx.SetShape(kXGrad, XOf(ctx).shape);
  ctx.ShareShape(kY, kYGrad);
  ctx.SetShape(kIntermediateGrad, intermediate);
  const auto share_lod = [&ctx](int input, int output) {
    Tensor* const to = ctx.optional_output(output);
    if (to != nullptr && ctx.has_input(input)) ShareLod(ctx.input(input), *to);
  };
  share_lod(kX, kXGrad);
  share_lod(kIntermediate, kIntermediateGrad);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> Like(KernelContext& ctx, const Tensor& other) {
  Tensor tensor;
  tensor.dtype = other.dtype;
  tensor.shape = other.shape;
  INTERP_RETURN_IF_ERROR(ctx.Allocate(tensor));
  return tensor;
}

// X + Y or X Y, or the activation of Y.
template <typename T>
absl::StatusOr<Tensor> Intermediate(KernelContext& ctx) {
  const ComposedAttrs& attrs = ctx.attrs<ComposedAttrs>();
  if (const Tensor* kept = ctx.optional_input(kIntermediate)) return *kept;
  if (!ctx.has_input(kX)) return ctx.input(kOut);
  const Tensor& y = ctx.input(kY);
  INTERP_ASSIGN_OR_RETURN(Tensor made, Like(ctx, attrs.unary_outside ? ctx.input(kOutGrad) : y));
  if (attrs.unary_outside) {
    ApplyComposedBinary<T>(attrs, ctx.num_threads(), ctx.input(kX), y, made);
  } else {
    ApplyComposedUnary<T>(attrs, ctx.num_threads(), y, made);
  }
  return made;
}

// to = the derivative of the activation at x, times grad; grad and `to` may share their memory.
template <typename T>
void UnaryGradient(const ComposedAttrs& attrs, int num_threads, const Tensor& x, const Tensor& grad,
                   Tensor& to) {
  const T* const values = x.data<T>();
  const T* const grads = grad.data<T>();
  T* const out = to.mutable_data<T>();
  WithComposedUnary(attrs, [&](const auto& op) {
    ParallelFor(num_threads, x.numel(), kElementwiseGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = op.Gradient(values[i], grads[i]);
    });
  });
}

// to = the gradient of one operand of the sum or product, beside `other`.
template <typename T>
absl::Status BinaryGradient(KernelContext& ctx, const Tensor& other, const Tensor& grad,
                            Tensor& to) {
  const ComposedAttrs& attrs = ctx.attrs<ComposedAttrs>();
  const binary_grad::Side side = {.self = &to,
                                  .other = &other,
                                  .grad = &grad,
                                  .self_grad = &to,
                                  .axis = attrs.axis,
                                  .num_threads = ctx.num_threads()};
  if (attrs.multiplies) {
    return binary_grad::OperandGrad<T, Takes::kOther>(ctx, side, [](T, T y, T g) { return g * y; });
  }
  return binary_grad::OperandGrad<T, Takes::kNothing>(ctx, side, [](T, T, T g) { return g; });
}

// Of f(X op Y).
template <typename T>
absl::Status UnaryOutside(KernelContext& ctx) {
  const Tensor& out_grad = ctx.input(kOutGrad);
  INTERP_ASSIGN_OR_RETURN(const Tensor intermediate, Intermediate<T>(ctx));
  Tensor scratch;
  Tensor* grad = ctx.optional_output(kIntermediateGrad);
  if (grad == nullptr) {
    INTERP_ASSIGN_OR_RETURN(scratch, Like(ctx, out_grad));
    grad = &scratch;
  }
  UnaryGradient<T>(ctx.attrs<ComposedAttrs>(), ctx.num_threads(), intermediate, out_grad, *grad);
  if (Tensor* x_grad = ctx.optional_output(kXGrad)) {
    INTERP_RETURN_IF_ERROR(BinaryGradient<T>(ctx, ctx.input(kY), *grad, *x_grad));
  }
  if (Tensor* y_grad = ctx.optional_output(kYGrad)) {
    return BinaryGradient<T>(ctx, XOf(ctx), *grad, *y_grad);
  }
  return absl::OkStatus();
}

// Of X op f(Y).
template <typename T>
absl::Status BinaryOutside(KernelContext& ctx) {
  const Tensor& out_grad = ctx.input(kOutGrad);
  if (Tensor* x_grad = ctx.optional_output(kXGrad)) {
    INTERP_ASSIGN_OR_RETURN(const Tensor intermediate, Intermediate<T>(ctx));
    INTERP_RETURN_IF_ERROR(BinaryGradient<T>(ctx, intermediate, out_grad, *x_grad));
  }
  Tensor* const y_grad = ctx.optional_output(kYGrad);
  Tensor* grad = ctx.optional_output(kIntermediateGrad);
  if (grad == nullptr) grad = y_grad;
  if (grad == nullptr) return absl::OkStatus();
  INTERP_RETURN_IF_ERROR(BinaryGradient<T>(ctx, ctx.input(kX), out_grad, *grad));
  if (y_grad != nullptr) {
    UnaryGradient<T>(ctx.attrs<ComposedAttrs>(), ctx.num_threads(), ctx.input(kY), *grad, *y_grad);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status ComposedGrad(KernelContext& ctx) {
  return ctx.attrs<ComposedAttrs>().unary_outside ? UnaryOutside<T>(ctx) : BinaryOutside<T>(ctx);
}

OpDef ComposedGradDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kOptional},
                 {"Y"},
                 {"IntermediateOut", kOptional},
                 {"Out@GRAD"},
                 {"Out", kOptional}},
      .outputs = {{"X@GRAD", kOptional},
                  {"Y@GRAD", kOptional},
                  {"IntermediateOut@GRAD", kOptional}},
      .parse = ParseAttrs<ComposedAttrs, ReadComposedAttrs>,
      .infer = InferComposedGrad,
      .kernels = {{DType::kFloat32, ComposedGrad<float>}, {DType::kFloat64, ComposedGrad<double>}},
  };
}

INTERP_REGISTER_OP(ComposedGradDef("fused_elemwise_activation_grad"));
INTERP_REGISTER_OP(ComposedGradDef("fused_elemwise_add_activation_grad"));

}  // namespace
}  // namespace interp
