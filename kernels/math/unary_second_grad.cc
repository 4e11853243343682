// Second and third gradients of functions of one number. Slots are those of Paddle
// (phi/api/yaml/backward.yaml, phi/api/yaml/op_compat.yaml).
#include "kernels/math/unary_second_grad.h"

namespace interp::second_grad {
namespace {

constexpr SecondSlots kOfX;
constexpr SecondSlots kOfOut = {.value = "Out", .value_grad = "Out@GRAD"};
constexpr SecondSlots kSigmoidSlots = {.value = "Out",
                                       .value_grad = "Out@GRAD",
                                       .grad = "fwd_grad_out",
                                       .grad_grad = "fwd_grad_out@GRAD"};

constexpr ThirdSlots kThirdOfX = {.value = "X",
                                  .value_grad = "X@GRAD",
                                  .grad = "grad_out_forward",
                                  .grad_grad = "grad_out_forward@GRAD",
                                  .a = "grad_x_grad_forward",
                                  .a_grad = "grad_x_grad_forward@GRAD",
                                  .u = "grad_out_grad@GRAD",
                                  .w = "grad_x@GRAD"};
constexpr ThirdSlots kThirdOfTanh = {.value = "Out",
                                     .value_grad = "Out@GRAD",
                                     .grad = "grad_out_forward",
                                     .grad_grad = "grad_out_forward@GRAD",
                                     .a = "grad_x_grad_forward",
                                     .a_grad = "grad_x_grad_forward@GRAD",
                                     .u = "grad_out_grad@GRAD",
                                     .w = "grad_out_new@GRAD"};
constexpr ThirdSlots kThirdOfSigmoid = {.value = "Out",
                                        .value_grad = "Out@GRAD",
                                        .grad = "fwd_grad_out",
                                        .grad_grad = "fwd_grad_out@GRAD",
                                        .a = "grad_grad_x",
                                        .a_grad = "grad_grad_x@GRAD",
                                        .u = "grad_grad_out@GRAD",
                                        .w = "grad_out@GRAD"};

// x = sin: cos, -sin, -cos. The gradient of cos is -sin.
VarId SinFirst(Expansion& ops, VarId x, VarId factor) {
  return GradientOf(ops, "sin_grad", {"X", x}, factor);
}
VarId CosFirst(Expansion& ops, VarId x, VarId factor) {
  return GradientOf(ops, "cos_grad", {"X", x}, factor);
}
VarId MinusSinFirst(Expansion& ops, VarId x, VarId factor) {
  return ops.Scale(SinFirst(ops, x, factor), -1);
}
VarId MinusCosFirst(Expansion& ops, VarId x, VarId factor) {
  return ops.Scale(CosFirst(ops, x, factor), -1);
}

// By y = tanh(x): 1 - y^2, -2 y, -2.
VarId TanhFirst(Expansion& ops, VarId y, VarId factor) {
  return GradientOf(ops, "tanh_grad", {"Out", y}, factor);
}
VarId MinusTwice(Expansion& ops, VarId /*y*/, VarId factor) { return ops.Scale(factor, -2); }
VarId TanhSecond(Expansion& ops, VarId y, VarId factor) {
  return ops.Scale(Product(ops, factor, y), -2);
}

// By y = sigmoid(x): y - y^2, 1 - 2 y, -2.
VarId SigmoidFirst(Expansion& ops, VarId y, VarId factor) {
  return GradientOf(ops, "sigmoid_grad", {"Out", y}, factor);
}
VarId SigmoidSecond(Expansion& ops, VarId y, VarId factor) {
  return ops.Sum({factor, TanhSecond(ops, y, factor)});
}

VarId SquareFirst(Expansion& ops, VarId x, VarId factor) {
  return GradientOf(ops, "square_grad", {"X", x}, factor);
}
VarId SquareSecond(Expansion& ops, VarId /*x*/, VarId factor) { return ops.Scale(factor, 2); }

// 1 / x, -1 / x^2.
VarId LogFirst(Expansion& ops, VarId x, VarId factor) {
  return GradientOf(ops, "log_grad", {"X", x}, factor);
}
VarId LogSecond(Expansion& ops, VarId x, VarId factor) {
  return ops.Scale(LogFirst(ops, x, LogFirst(ops, x, factor)), -1);
}

INTERP_REGISTER_EXPANSION(SecondDef<SinFirst, CosFirst, kOfX>("sin_double_grad"));
INTERP_REGISTER_EXPANSION(SecondDef<CosFirst, MinusSinFirst, kOfX>("cos_double_grad"));
INTERP_REGISTER_EXPANSION(SecondDef<TanhFirst, TanhSecond, kOfOut>("tanh_grad_grad"));
INTERP_REGISTER_EXPANSION(
    SecondDef<SigmoidFirst, SigmoidSecond, kSigmoidSlots>("sigmoid_grad_grad"));
INTERP_REGISTER_EXPANSION(SecondDef<SquareFirst, SquareSecond, kOfX>("square_grad_grad"));
INTERP_REGISTER_EXPANSION(SecondDef<LogFirst, LogSecond, kOfX>("log_grad_grad"));

INTERP_REGISTER_EXPANSION(
    ThirdDef<SinFirst, CosFirst, MinusSinFirst, kThirdOfX>("sin_triple_grad"));
INTERP_REGISTER_EXPANSION(
    ThirdDef<CosFirst, MinusSinFirst, MinusCosFirst, kThirdOfX>("cos_triple_grad"));
INTERP_REGISTER_EXPANSION(
    ThirdDef<TanhFirst, TanhSecond, MinusTwice, kThirdOfTanh>("tanh_triple_grad"));
INTERP_REGISTER_EXPANSION(
    ThirdDef<SigmoidFirst, SigmoidSecond, MinusTwice, kThirdOfSigmoid>("sigmoid_triple_grad"));

}  // namespace
}  // namespace interp::second_grad
