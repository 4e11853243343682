#include "kernels/math/unary.h"

namespace interp {

absl::Status InferUnary(InferContext& ctx) {
  ctx.ShareShape(unary::kX, unary::kOut);
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

}  // namespace interp
