// Second and third gradients of pow by a number n: n x^(n - 1), n (n - 1) x^(n - 2) and
// n (n - 1) (n - 2) x^(n - 3), of which each is pow_grad of one degree less, times a number.
#include "kernels/math/unary_second_grad.h"

namespace interp::second_grad {
namespace {

constexpr SecondSlots kPowSlots;
constexpr ThirdSlots kThirdPowSlots = {.value = "X",
                                       .value_grad = "X@GRAD",
                                       .grad = "grad_out",
                                       .grad_grad = "grad_out@GRAD",
                                       .a = "grad_grad_x",
                                       .a_grad = "grad_grad_x@GRAD",
                                       .u = "grad_grad_out@GRAD",
                                       .w = "grad_x@GRAD"};

float Exponent(Expansion& ops) { return ops.attrs().Float("factor", 1); }

VarId PowGradient(Expansion& ops, VarId x, float exponent, VarId factor) {
  const VarId grad = GradientOf(ops, "pow_grad", {"X", x}, factor);
  if (grad != Expansion::kAbsent) ops.SetAttr("factor", exponent);
  return grad;
}

VarId PowFirst(Expansion& ops, VarId x, VarId factor) {
  return PowGradient(ops, x, Exponent(ops), factor);
}
VarId PowSecond(Expansion& ops, VarId x, VarId factor) {
  const float n = Exponent(ops);
  return ops.Scale(PowGradient(ops, x, n - 1, factor), n);
}
VarId PowThird(Expansion& ops, VarId x, VarId factor) {
  const float n = Exponent(ops);
  return ops.Scale(PowGradient(ops, x, n - 2, factor), n * (n - 1));
}

// An exponent that a tensor gives is not known here.
template <absl::Status (*Expand)(Expansion&)>
absl::Status WithoutTensor(Expansion& ops) {
  if (ops.Input("FactorTensor") != Expansion::kAbsent) {
    return Unimplemented("takes no 'FactorTensor'");
  }
  return Expand(ops);
}

ExpansionDef WithFactorSlot(ExpansionDef def, absl::Status (*expand)(Expansion&)) {
  def.inputs.push_back({"FactorTensor", kOptional});
  def.expand = expand;
  return def;
}

INTERP_REGISTER_EXPANSION(
    WithFactorSlot(SecondDef<PowFirst, PowSecond, kPowSlots>("pow_double_grad"),
                   WithoutTensor<ExpandSecond<PowFirst, PowSecond, kPowSlots>>));
INTERP_REGISTER_EXPANSION(
    WithFactorSlot(ThirdDef<PowFirst, PowSecond, PowThird, kThirdPowSlots>("pow_triple_grad"),
                   WithoutTensor<ExpandThird<PowFirst, PowSecond, PowThird, kThirdPowSlots>>));

}  // namespace
}  // namespace interp::second_grad
