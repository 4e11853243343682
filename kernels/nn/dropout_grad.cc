// dropout_grad: in training X@GRAD = Out@GRAD Mask, divided as dropout has divided; in tests the
// factor of all elements.
#include "core/op_def.h"
#include "kernels/nn/dropout.h"
#include "kernels/util/all_present.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int kMask = 0;
constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

absl::Status Infer(InferContext& ctx) {
  if (!ctx.attrs<DropoutAttrs>().test) {
    INTERP_RETURN_IF_ERROR(CheckPresent(ctx, kMask, "Mask"));
    const Tensor& mask = ctx.input(kMask);
    INTERP_RETURN_IF_ERROR(CheckGradientShape(mask, "Mask", ctx.input(kOutGrad).shape));
    if (SizeOf(mask.dtype) != 1) {
      return InvalidArgument("input 'Mask' is ", DescribeType(mask), ", expected uint8");
    }
  }
  ctx.ShareShape(kOutGrad, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status DropoutGrad(KernelContext& ctx) {
  Tensor* x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const DropoutAttrs attrs, DropoutAttrsOf(ctx));
  const T* from = ctx.input(kOutGrad).data<T>();
  T* to = x_grad->mutable_data<T>();
  using C = ComputeType<T>;
  const C rest = static_cast<C>(1.0F - attrs.probability);
  if (attrs.test) {
    const C factor = attrs.upscale_in_train ? C{1} : rest;
    ParallelFor(ctx.num_threads(), x_grad->numel(), kElementwiseGrain,
                [=](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) to[i] = static_cast<T>(from[i] * factor);
                });
    return absl::OkStatus();
  }
  const auto* mask = static_cast<const uint8_t*>(ctx.input(kMask).raw_data());
  const C divisor = attrs.upscale_in_train && attrs.probability < 1 ? rest : C{1};
  ParallelFor(ctx.num_threads(), x_grad->numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  to[i] = mask[i] != 0 ? static_cast<T>(from[i] / divisor) : T{0};
                }
              });
  return absl::OkStatus();
}

// The mask has the dtype of no kernel.
DType KernelDType(const DTypeContext& ctx) { return ctx.input(kOutGrad); }

INTERP_REGISTER_OP(OpDef{
    .type = "dropout_grad",
    .inputs = {{"Mask", kOptional | kAnyDType},
               {"Out@GRAD"},
               {"ProbabilityTensor", kProbabilityFlags}},
    .outputs = {{"X@GRAD", kOptional}},
    .parse = ParseAttrs<DropoutAttrs, ReadDropout>,
    .kernel_dtype = KernelDType,
    .infer = Infer,
    .kernels = {{DType::kFloat32, DropoutGrad<float>},
                {DType::kFloat64, DropoutGrad<double>},
                {DType::kBFloat16, DropoutGrad<bfloat16>}},
    .layout = LayoutRule::kFollows,
    .inplace = {{kOutGrad, kXGrad}},
});

}  // namespace
}  // namespace interp::nn
