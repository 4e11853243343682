#include "kernels/math/unary_grad.h"

#include "kernels/util/gradient_shape.h"

namespace interp {

using unary_grad::kOut;
using unary_grad::kOutGrad;
using unary_grad::kX;
using unary_grad::kXGrad;

absl::Status InferUnaryGrad(InferContext& ctx, int slot) {
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", ctx.input(slot).shape));
  ctx.ShareShape(slot, kXGrad);
  return absl::OkStatus();
}

OpDef PlainUnaryGradDef(absl::string_view type, int slot, std::vector<KernelDef> kernels) {
  const auto flags = [slot](int of) { return of == slot ? 0 : kOptional | kNoNeedBuffer; };
  OpDef def{.type = type,
            .inputs = {{"X", flags(kX)}, {"Out", flags(kOut)}, {"Out@GRAD"}},
            .outputs = {{"X@GRAD"}},
            .infer = [](InferContext& ctx) { return InferUnaryGrad(ctx, kOutGrad); },
            .kernels = std::move(kernels),
            .layout = LayoutRule::kFollows,
            .inplace = {{kOutGrad, kXGrad}}};
  if (slot == kX) def.infer = [](InferContext& ctx) { return InferUnaryGrad(ctx, kX); };
  if (slot == kOut) def.infer = [](InferContext& ctx) { return InferUnaryGrad(ctx, kOut); };
  if (slot != kOutGrad) def.inplace.push_back({slot, kXGrad});
  return def;
}

}  // namespace interp
