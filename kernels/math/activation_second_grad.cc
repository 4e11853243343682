// Second gradients of activations of pieces. Where these are straight, V@GRAD is zero and has no
// slot; the others are of X.
#include "kernels/math/unary_second_grad.h"

namespace interp::second_grad {
namespace {

constexpr SecondSlots kActivationSlots;

// factor where x is above zero.
VarId WherePositive(Expansion& ops, VarId x, VarId factor) {
  return GradientOf(ops, "relu_grad", {"Out", x}, factor);
}

VarId AlphaTimes(Expansion& ops, absl::string_view gradient, VarId x, VarId factor) {
  return GradientOf(ops, gradient, {"X", x}, factor);
}

// What the first gradient is below zero, its own derivative.
VarId Below(Expansion& ops, absl::string_view gradient, VarId x, VarId factor) {
  const VarId all = AlphaTimes(ops, gradient, x, factor);
  return ops.Sum({all, ops.Scale(WherePositive(ops, x, factor), -1)});
}

VarId EluFirst(Expansion& ops, VarId x, VarId factor) {
  return AlphaTimes(ops, "elu_grad", x, factor);
}
VarId EluSecond(Expansion& ops, VarId x, VarId factor) { return Below(ops, "elu_grad", x, factor); }

VarId CeluFirst(Expansion& ops, VarId x, VarId factor) {
  return AlphaTimes(ops, "celu_grad", x, factor);
}
VarId CeluSecond(Expansion& ops, VarId x, VarId factor) {
  return ops.Scale(Below(ops, "celu_grad", x, factor), 1 / ops.attrs().Float("alpha", 1));
}

// s = sigmoid(beta x) below the threshold and 1 above, beta (s - s^2).
VarId SoftplusFirst(Expansion& ops, VarId x, VarId factor) {
  return AlphaTimes(ops, "softplus_grad", x, factor);
}
VarId SoftplusSecond(Expansion& ops, VarId x, VarId factor) {
  const VarId once = SoftplusFirst(ops, x, factor);
  const VarId twice = SoftplusFirst(ops, x, once);
  return ops.Scale(ops.Sum({once, ops.Scale(twice, -1)}), ops.attrs().Float("beta", 1));
}

// The first gradient of X, or of Out, and of `grad_x@GRAD`.
absl::Status ExpandStraight(Expansion& ops, absl::string_view gradient, Expansion::Argument value) {
  ops.Set("grad_out@GRAD", GradientOf(ops, gradient, value, ops.Input("grad_x@GRAD")));
  return absl::OkStatus();
}
absl::Status ExpandAbs(Expansion& ops) {
  return ExpandStraight(ops, "abs_grad", {"X", ops.Input("x")});
}
absl::Status ExpandRelu(Expansion& ops) {
  return ExpandStraight(ops, "relu_grad", {"Out", ops.Input("Out")});
}
absl::Status ExpandLeakyRelu(Expansion& ops) {
  return ExpandStraight(ops, "leaky_relu_grad", {"X", ops.Input("X")});
}

absl::Status ExpandClip(Expansion& ops) {
  const VarId grad = GradientOf(ops, "clip_grad", {"X", ops.Input("X")}, ops.Input("grad_x@GRAD"));
  if (grad != Expansion::kAbsent) {
    for (const absl::string_view bound : {"Min", "Max"}) ops.AlsoTakes(bound, {ops.Input(bound)});
  }
  ops.Set("grad_out@GRAD", grad);
  return absl::OkStatus();
}

ExpansionDef StraightDef(absl::string_view type, absl::string_view slot,
                         absl::Status (*expand)(Expansion&)) {
  return {.type = type,
          .inputs = {{slot}, {"grad_x@GRAD"}},
          .outputs = {{"grad_out@GRAD"}},
          .expand = expand};
}

ExpansionDef ClipDef() {
  ExpansionDef def = StraightDef("clip_double_grad", "X", ExpandClip);
  def.inputs.push_back({"Min", kOptional});
  def.inputs.push_back({"Max", kOptional});
  return def;
}

INTERP_REGISTER_EXPANSION(SecondDef<EluFirst, EluSecond, kActivationSlots>("elu_grad_grad"));
INTERP_REGISTER_EXPANSION(SecondDef<CeluFirst, CeluSecond, kActivationSlots>("celu_grad_grad"));
INTERP_REGISTER_EXPANSION(
    SecondDef<SoftplusFirst, SoftplusSecond, kActivationSlots>("softplus_double_grad"));
INTERP_REGISTER_EXPANSION(StraightDef("abs_double_grad", "x", ExpandAbs));
INTERP_REGISTER_EXPANSION(StraightDef("relu_grad_grad", "Out", ExpandRelu));
INTERP_REGISTER_EXPANSION(StraightDef("leaky_relu_grad_grad", "X", ExpandLeakyRelu));
INTERP_REGISTER_EXPANSION(ClipDef());

}  // namespace
}  // namespace interp::second_grad
