// Second and third gradients of pow by a number n: n x^(n - 1), n (n - 1) x^(n - 2) and
// n (n - 1) (n - 2) x^(n - 3), of which each is pow_grad of one degree less, times a number.
#include <vector>

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

// n - `less`, where a tensor gives n; kAbsent where the attribute does.
VarId ExponentTensor(Expansion& ops, float less) {
  const VarId n = ops.Input("FactorTensor");
  if (n == Expansion::kAbsent || less == 0) return n;
  const VarId shifted = ops.Add("scale", {{"X", n}});
  ops.SetAttr("scale", 1.0F);
  ops.SetAttr("bias", -less);
  return shifted;
}

VarId PowGradient(Expansion& ops, VarId x, float less, VarId factor) {
  const VarId exponent = ExponentTensor(ops, less);
  const VarId grad = GradientOf(ops, "pow_grad", {"X", x}, factor);
  if (grad == Expansion::kAbsent) return grad;
  ops.SetAttr("factor", ops.attrs().Float("factor", 1) - less);
  ops.AlsoTakes("FactorTensor", {exponent});
  return grad;
}

// (n - `less`) times the value.
VarId TimesExponent(Expansion& ops, VarId value, float less) {
  const VarId exponent = ExponentTensor(ops, less);
  if (exponent == Expansion::kAbsent) {
    return ops.Scale(value, ops.attrs().Float("factor", 1) - less);
  }
  const VarId number = ops.Add("reshape", {{"X", exponent}});
  ops.SetAttr("shape", std::vector<int32_t>());
  return ops.Add("elementwise_mul", {{"X", value}, {"Y", number}});
}

VarId PowFirst(Expansion& ops, VarId x, VarId factor) { return PowGradient(ops, x, 0, factor); }
VarId PowSecond(Expansion& ops, VarId x, VarId factor) {
  return TimesExponent(ops, PowGradient(ops, x, 1, factor), 0);
}
VarId PowThird(Expansion& ops, VarId x, VarId factor) {
  return TimesExponent(ops, TimesExponent(ops, PowGradient(ops, x, 2, factor), 1), 0);
}

ExpansionDef WithFactorSlot(ExpansionDef def) {
  def.inputs.push_back({"FactorTensor", kOptional});
  return def;
}

INTERP_REGISTER_EXPANSION(
    WithFactorSlot(SecondDef<PowFirst, PowSecond, kPowSlots>("pow_double_grad")));
INTERP_REGISTER_EXPANSION(
    WithFactorSlot(ThirdDef<PowFirst, PowSecond, PowThird, kThirdPowSlots>("pow_triple_grad")));

}  // namespace
}  // namespace interp::second_grad
