// smooth_l1_loss, of releases before 2.0: d = InsideWeight (X - Y); Out of a row is the sum of
// OutsideWeight f(d), where f(d) = (sigma d)^2 / 2 for |d| < 1 / sigma^2, else
// |d| - 1 / (2 sigma^2).
#include <cmath>

#include "kernels/loss/pair_loss.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kInsideWeight = 2;
constexpr int kOutsideWeight = 3;
constexpr int kDiff = 0;
constexpr int kOut = 1;

struct SmoothL1Attrs {
  float sigma = 1;
};

SmoothL1Attrs ReadSmoothL1Attrs(AttrReader& reader) { return {reader.Float("sigma", 1.0f)}; }

absl::Status InferSmoothL1Loss(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() < 2) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected rank 2 or more");
  }
  INTERP_RETURN_IF_ERROR(CheckLossShape(ctx, kY, "Y", "X"));
  if (ctx.has_input(kInsideWeight) != ctx.has_input(kOutsideWeight)) {
    return InvalidArgument("inputs 'InsideWeight' and 'OutsideWeight' come together or not at all");
  }
  if (ctx.has_input(kInsideWeight)) {
    INTERP_RETURN_IF_ERROR(CheckLossShape(ctx, kInsideWeight, "InsideWeight", "X"));
    INTERP_RETURN_IF_ERROR(CheckLossShape(ctx, kOutsideWeight, "OutsideWeight", "X"));
  }
  ctx.SetShape(kDiff, x);
  ctx.SetShape(kOut, {x[0], 1});
  return absl::OkStatus();
}

absl::Status SmoothL1Loss(KernelContext& ctx) {
  const float sigma = ctx.attrs<SmoothL1Attrs>().sigma;
  const float sigma2 = sigma * sigma;
  const Tensor& x_tensor = ctx.input(kX);
  const auto* const x = x_tensor.data<float>();
  const auto* const y = ctx.input(kY).data<float>();
  const bool weighted = ctx.has_input(kInsideWeight);
  const float* const inside = weighted ? ctx.input(kInsideWeight).data<float>() : nullptr;
  const float* const outside = weighted ? ctx.input(kOutsideWeight).data<float>() : nullptr;
  auto* const diff = ctx.output(kDiff).mutable_data<float>();
  auto* const out = ctx.output(kOut).mutable_data<float>();
  const int64_t width = x_tensor.shape.numel(1, x_tensor.shape.rank());
  for (int64_t row = 0; row < x_tensor.shape[0]; ++row) {
    double sum = 0;
    for (int64_t i = row * width; i < (row + 1) * width; ++i) {
      diff[i] = (x[i] - y[i]) * (weighted ? inside[i] : 1.0f);
      const float size = std::abs(diff[i]);
      const float loss =
          size < 1.0f / sigma2 ? 0.5f * diff[i] * diff[i] * sigma2 : size - 0.5f / sigma2;
      sum += loss * (weighted ? outside[i] : 1.0f);
    }
    out[row] = static_cast<float>(sum);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "smooth_l1_loss",
    .inputs = {{"X"}, {"Y"}, {"InsideWeight", kOptional}, {"OutsideWeight", kOptional}},
    .outputs = {{"Diff"}, {"Out"}},
    .parse = ParseAttrs<SmoothL1Attrs, ReadSmoothL1Attrs>,
    .infer = InferSmoothL1Loss,
    .kernels = {{DType::kFloat32, SmoothL1Loss}},
});

}  // namespace
}  // namespace interp
