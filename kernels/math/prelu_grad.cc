// prelu_grad: where X > 0, X@GRAD = Out@GRAD; elsewhere it is Alpha Out@GRAD, and X Out@GRAD goes
// into Alpha@GRAD, summed over the elements that an Alpha meets. Samples of Alpha behind the first
// one meet none.
#include <algorithm>

#include "kernels/math/binary_grad.h"
#include "kernels/math/prelu.h"
#include "kernels/util/gradient_shape.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kAlpha = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;
constexpr int kAlphaGrad = 1;

absl::Status InferPReluGrad(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_RETURN_IF_ERROR(CheckAlpha(ctx.attrs<PReluAttrs>(), x, ctx.input(kAlpha)));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", x.shape));
  ctx.SetShape(kXGrad, ctx.input(kX).shape);
  ctx.SetShape(kAlphaGrad, ctx.input(kAlpha).shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status PReluGrad(KernelContext& ctx) {
  const PReluAttrs& attrs = ctx.attrs<PReluAttrs>();
  const Tensor& x = ctx.input(kX);
  const Tensor alpha = AlphaAtRankOf(attrs, x, ctx.input(kAlpha));
  binary_grad::Side side = {.grad = &ctx.input(kOutGrad), .num_threads = ctx.num_threads()};
  if (Tensor* alpha_grad = ctx.optional_output(kAlphaGrad)) {
    Tensor at_rank = AlphaAtRankOf(attrs, x, *alpha_grad);
    T* const all = alpha_grad->mutable_data<T>();
    std::fill(all + at_rank.numel(), all + alpha_grad->numel(), T{0});
    side.self = &alpha;
    side.other = &x;
    side.self_grad = &at_rank;
    INTERP_RETURN_IF_ERROR((binary_grad::OperandGrad<T, Takes::kOther>(
        ctx, side, [](T, T value, T grad) { return value > 0 ? T{0} : grad * value; })));
  }
  if (Tensor* x_grad = ctx.optional_output(kXGrad)) {
    side.self = &x;
    side.other = &alpha;
    side.self_grad = x_grad;
    INTERP_RETURN_IF_ERROR((binary_grad::OperandGrad<T, Takes::kBoth>(
        ctx, side, [](T value, T slope, T grad) { return value > 0 ? grad : grad * slope; })));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "prelu_grad",
    .inputs = {{"X"}, {"Alpha"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Alpha@GRAD", kOptional}},
    .parse = ParseAttrs<PReluAttrs, PReluAttrs::Read>,
    .infer = InferPReluGrad,
    .kernels = {{DType::kFloat32, PReluGrad<float>}, {DType::kFloat64, PReluGrad<double>}},
    .layout = LayoutRule::kFollows,
    .inplace = {{kOutGrad, kXGrad}},
});

}  // namespace
}  // namespace interp
