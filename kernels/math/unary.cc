#include "kernels/math/unary.h"

namespace interp {

GradientDef ToGradientDef(UnaryGradient kind) {
  GradientDef def = {.outputs = {"X@GRAD"}};
  if (kind == UnaryGradient::kOfX || kind == UnaryGradient::kOfBoth) def.inputs.push_back("X");
  if (kind == UnaryGradient::kOfOut || kind == UnaryGradient::kOfBoth) def.inputs.push_back("Out");
  def.inputs.push_back("Out@GRAD");
  return def;
}

absl::Status InferUnary(InferContext& ctx) {
  ctx.ShareShape(unary::kX, unary::kOut);
  return absl::OkStatus();
}

absl::Status InferUnaryWithoutLod(InferContext& ctx) {
  ctx.SetShape(unary::kOut, ctx.input(unary::kX).shape);
  return absl::OkStatus();
}

OpDef PlainUnaryDef(absl::string_view type, std::vector<KernelDef> kernels) {
  return OpDef{.type = type,
               .inputs = {{"X"}},
               .outputs = {{"Out"}},
               .infer = InferUnary,
               .kernels = std::move(kernels),
               .layout = LayoutRule::kFollows,
               .inplace = {{unary::kX, unary::kOut}}};
}

OpDef TakingRows(OpDef def) {
  def.inputs[unary::kX].flags |= kMayBeRows;
  def.outputs[unary::kOut].flags |= kMayBeRows;
  return def;
}

}  // namespace interp
