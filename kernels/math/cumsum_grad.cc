// cumsum_grad: X@GRAD = running sums of Out@GRAD from the other end.
#include "kernels/math/cumsum.h"
#include "kernels/util/gradient_rows.h"
#include "kernels/util/gradient_shape.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOutGrad = 1;
constexpr int kAxisTensor = 2;
constexpr int kXGrad = 0;

absl::Status InferCumSumGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const CumSumAttrs attrs, CumSumAttrsOf(ctx, kAxisTensor));
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckCumSumAxis(attrs, x));
  INTERP_RETURN_IF_ERROR(
      CheckGradientShape(ctx, kOutGrad, "Out@GRAD", attrs.flatten ? Shape{x.numel()} : x));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status CumSumGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(CumSumAttrs attrs, CumSumAttrsOf(ctx, kAxisTensor));
  attrs.reverse = !attrs.reverse;
  RunCumSum(ctx.num_threads(), attrs, ctx.input(kX).shape, ctx.input(kOutGrad).data<T>(),
            ctx.output(kXGrad).mutable_data<T>());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "cumsum_grad",
    .inputs = {{"X", kNoNeedBuffer},
               {"Out@GRAD"},
               {"AxisTensor", kOptional | kAnyDType | kValueInInfer}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<CumSumAttrs, CumSumAttrs::Read>,
    .infer = InferCumSumGrad,
    .kernels = GradientRows([]<typename T>() -> KernelFn { return CumSumGrad<T>; }),
    .inplace = {{kOutGrad, kXGrad}},
});

}  // namespace
}  // namespace interp
