// smooth_l1_loss, of releases before 2.0: d = InsideWeight (X - Y); Out of a row is the sum of
// OutsideWeight f(d), where f(d) = (sigma d)^2 / 2 for |d| < 1 / sigma^2, else
// |d| - 1 / (2 sigma^2).
#include <cmath>

#include "kernels/loss/loss_attrs.h"
#include "kernels/loss/pair_loss.h"
#include "kernels/util/check_shape.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kInsideWeight = 2;
constexpr int kOutsideWeight = 3;
constexpr int kDiff = 0;
constexpr int kOut = 1;

absl::Status InferSmoothL1Loss(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() < 2) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected rank 2 or more");
  }
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kY, "Y", 0, "X"));
  if (ctx.has_input(kInsideWeight) != ctx.has_input(kOutsideWeight)) {
    return InvalidArgument("inputs 'InsideWeight' and 'OutsideWeight' come together or not at all");
  }
  if (ctx.has_input(kInsideWeight)) {
    INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kInsideWeight, "InsideWeight", 0, "X"));
    INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kOutsideWeight, "OutsideWeight", 0, "X"));
  }
  ctx.SetShape(kDiff, x);
  ctx.SetShape(kOut, {x[0], 1});
  return absl::OkStatus();
}

template <typename T>
absl::Status SmoothL1Loss(KernelContext& ctx) {
  const T sigma = static_cast<T>(ctx.attrs<SmoothL1Attrs>().sigma);
  const T sigma2 = sigma * sigma;
  const Tensor& x_tensor = ctx.input(kX);
  const auto* const x = x_tensor.data<T>();
  const auto* const y = ctx.input(kY).data<T>();
  const bool weighted = ctx.has_input(kInsideWeight);
  const T* const inside = weighted ? ctx.input(kInsideWeight).data<T>() : nullptr;
  const T* const outside = weighted ? ctx.input(kOutsideWeight).data<T>() : nullptr;
  auto* const diff = ctx.output(kDiff).mutable_data<T>();
  auto* const out = ctx.output(kOut).mutable_data<T>();
  const int64_t width = x_tensor.shape.numel(1, x_tensor.shape.rank());
  for (int64_t row = 0; row < x_tensor.shape[0]; ++row) {
    double sum = 0;
    for (int64_t i = row * width; i < (row + 1) * width; ++i) {
      diff[i] = (x[i] - y[i]) * (weighted ? inside[i] : T{1});
      const T size = std::abs(diff[i]);
      const T loss =
          size < T{1} / sigma2 ? T(0.5) * diff[i] * diff[i] * sigma2 : size - T(0.5) / sigma2;
      sum += loss * (weighted ? outside[i] : T{1});
    }
    out[row] = static_cast<T>(sum);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "smooth_l1_loss",
    .inputs = {{"X"}, {"Y"}, {"InsideWeight", kOptional}, {"OutsideWeight", kOptional}},
    .outputs = {{"Diff"}, {"Out"}},
    .parse = ParseAttrs<SmoothL1Attrs, SmoothL1Attrs::Read>,
    .infer = InferSmoothL1Loss,
    .kernels = {{DType::kFloat32, SmoothL1Loss<float>}, {DType::kFloat64, SmoothL1Loss<double>}},
    .gradient = {.inputs = {"InsideWeight", "OutsideWeight", "Diff", "Out@GRAD"},
                 .outputs = {"X@GRAD", "Y@GRAD"}},
});

}  // namespace
}  // namespace interp
