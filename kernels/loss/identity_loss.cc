// identity_loss: X itself, the sum or the mean of its elements: marks a loss for some devices.
// identity_loss_grad hands Out@GRAD on to all elements, in equal shares for a mean.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

enum class Reduction : uint8_t { kSum, kMean, kNone };

struct IdentityAttrs {
  Reduction reduction = Reduction::kMean;
};

IdentityAttrs ReadAttrs(AttrReader& reader) {
  const int32_t reduction = reader.Int("reduction", 1);
  if (reduction < 0 || reduction > 2) {
    reader.Fail(absl::StrCat("attribute 'reduction' is ", reduction,
                             ", expected 0 (sum), 1 (mean) or 2 (none)"));
    return {};
  }
  return {static_cast<Reduction>(reduction)};
}

absl::Status Infer(InferContext& ctx) {
  if (ctx.attrs<IdentityAttrs>().reduction == Reduction::kNone) {
    ctx.ShareShape(kX, kOut);
  } else {
    ctx.SetShape(kOut, {});
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status IdentityLoss(KernelContext& ctx) {
  const Reduction reduction = ctx.attrs<IdentityAttrs>().reduction;
  const int64_t n = ctx.input(kX).numel();
  const T* const x = ctx.input(kX).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  if (reduction == Reduction::kNone) {
    if (x != out) std::copy_n(x, n, out);
    return absl::OkStatus();
  }
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  *out = static_cast<T>(reduction == Reduction::kMean ? sum / static_cast<double>(n) : sum);
  return absl::OkStatus();
}

absl::Status InferGrad(InferContext& ctx) {
  const bool none = ctx.attrs<IdentityAttrs>().reduction == Reduction::kNone;
  INTERP_RETURN_IF_ERROR(
      CheckGradientShape(ctx, kOutGrad, "Out@GRAD", none ? ctx.input(kX).shape : Shape{}));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status IdentityLossGrad(KernelContext& ctx) {
  const Reduction reduction = ctx.attrs<IdentityAttrs>().reduction;
  Tensor& x_grad = ctx.output(kXGrad);
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const to = x_grad.mutable_data<T>();
  if (reduction == Reduction::kNone) {
    std::copy_n(grad, x_grad.numel(), to);
    return absl::OkStatus();
  }
  const T divisor = reduction == Reduction::kMean ? static_cast<T>(x_grad.numel()) : T{1};
  std::fill_n(to, x_grad.numel(), *grad / divisor);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "identity_loss",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<IdentityAttrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, IdentityLoss<float>}, {DType::kFloat64, IdentityLoss<double>}},
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "identity_loss_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<IdentityAttrs, ReadAttrs>,
    .infer = InferGrad,
    .kernels = {{DType::kFloat32, IdentityLossGrad<float>},
                {DType::kFloat64, IdentityLossGrad<double>}},
});

}  // namespace
}  // namespace interp
