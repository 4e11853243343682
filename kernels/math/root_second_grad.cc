// Second gradients of sqrt and rsqrt. Paddle's read X@GRAD of the first one instead of Out@GRAD:
//
//   sqrt    Out@GRAD = -a X@GRAD / Out        rsqrt    Out@GRAD = 3 a X@GRAD / Out
#include "kernels/math/unary_second_grad.h"

namespace interp::second_grad {
namespace {

absl::Status ExpandRoot(Expansion& ops, absl::string_view gradient, float factor) {
  const VarId out = ops.Input("Out");
  const VarId a = ops.Input("grad_x@GRAD");
  ops.Set("grad_out@GRAD", GradientOf(ops, gradient, {"Out", out}, a));
  if (!ops.Wants("Out@GRAD")) return absl::OkStatus();
  const VarId product = Product(ops, ops.Input("grad_x"), a);
  const VarId quotient = ops.Add("elementwise_div", {{"X", product}, {"Y", out}});
  ops.Set("Out@GRAD", ops.Scale(quotient, factor));
  return absl::OkStatus();
}

absl::Status ExpandSqrt(Expansion& ops) { return ExpandRoot(ops, "sqrt_grad", -1); }
absl::Status ExpandRsqrt(Expansion& ops) { return ExpandRoot(ops, "rsqrt_grad", 3); }

ExpansionDef RootDef(absl::string_view type, absl::Status (*expand)(Expansion&)) {
  return {.type = type,
          .inputs = {{"Out"}, {"grad_x", kOptional}, {"grad_x@GRAD"}},
          .outputs = {{"Out@GRAD", kOptional}, {"grad_out@GRAD", kOptional}},
          .expand = expand};
}

INTERP_REGISTER_EXPANSION(RootDef("sqrt_grad_grad", ExpandSqrt));
INTERP_REGISTER_EXPANSION(RootDef("rsqrt_grad_grad", ExpandRsqrt));

}  // namespace
}  // namespace interp::second_grad
