// smooth_l1_loss_grad: X@GRAD = InsideWeight OutsideWeight f'(Diff) times the gradient of the row,
// Y@GRAD the opposite. f'(d) = sigma^2 d for |d| < 1 / sigma^2, else the sign of d.
#include <cmath>

#include "kernels/loss/loss_attrs.h"
#include "kernels/loss/opposites.h"
#include "kernels/loss/pair_loss.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/gradient_shape.h"

namespace interp {
namespace {

constexpr int kDiff = 0;
constexpr int kInsideWeight = 1;
constexpr int kOutsideWeight = 2;
constexpr int kOutGrad = 3;
constexpr int kXGrad = 0;
constexpr int kYGrad = 1;

absl::Status InferSmoothL1LossGrad(InferContext& ctx) {
  const Shape& diff = ctx.input(kDiff).shape;
  if (diff.rank() < 2) {
    return InvalidArgument("input 'Diff' has shape ", ToString(diff), ", expected rank 2 or more");
  }
  if (ctx.has_input(kInsideWeight) != ctx.has_input(kOutsideWeight)) {
    return InvalidArgument("inputs 'InsideWeight' and 'OutsideWeight' come together or not at all");
  }
  if (ctx.has_input(kInsideWeight)) {
    INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kInsideWeight, "InsideWeight", 0, "Diff"));
    INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kOutsideWeight, "OutsideWeight", 0, "Diff"));
  }
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", {diff[0], 1}));
  ctx.ShareShape(kDiff, kXGrad);
  ctx.ShareShape(kDiff, kYGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status SmoothL1LossGrad(KernelContext& ctx) {
  const T sigma = static_cast<T>(ctx.attrs<SmoothL1Attrs>().sigma);
  const T sigma2 = sigma * sigma;
  const Tensor& diff_tensor = ctx.input(kDiff);
  const T* const diff = diff_tensor.data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  const bool weighted = ctx.has_input(kInsideWeight);
  const T* const inside = weighted ? ctx.input(kInsideWeight).data<T>() : nullptr;
  const T* const outside = weighted ? ctx.input(kOutsideWeight).data<T>() : nullptr;
  const int64_t width = diff_tensor.shape.numel(1, diff_tensor.shape.rank());
  WriteOpposites<T>(ctx, diff_tensor.numel(), [=](int64_t i) {
    const T d = diff[i];
    const T slope = std::abs(d) < T{1} / sigma2 ? sigma2 * d : static_cast<T>((d > 0) - (d < 0));
    return grad[i / width] * slope * (weighted ? inside[i] * outside[i] : T{1});
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "smooth_l1_loss_grad",
    .inputs = {{"Diff"}, {"InsideWeight", kOptional}, {"OutsideWeight", kOptional}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
    .parse = ParseAttrs<SmoothL1Attrs, SmoothL1Attrs::Read>,
    .infer = InferSmoothL1LossGrad,
    .kernels = {{DType::kFloat32, SmoothL1LossGrad<float>},
                {DType::kFloat64, SmoothL1LossGrad<double>}},
});

}  // namespace
}  // namespace interp
