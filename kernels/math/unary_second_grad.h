// Second and third gradients of ops of one tensor, as sums of what their first gradients give.
//
// With V the tensor that the first gradient reads, X or Out, and d = Out@GRAD, that gradient is
// d h1(V). `First`, `Second` and `Third` are h1 and its derivatives by X or Out, times a number:
// they add the ops that compute it. The second gradient, of a = X@GRAD@GRAD:
//
//   d@GRAD = h1(V) a           V@GRAD = h2(V) a d
//
// and the third one, of u = d@GRAD@GRAD and w = V@GRAD@GRAD:
//
//   V@GRAD = h2(V) u a + h3(V) w d a     d@GRAD = h2(V) w a     a@GRAD = h1(V) u + h2(V) w d
#pragma once

#include "core/expansion.h"

namespace interp::second_grad {

// Adds ops that compute h(value) * factor.
using TimesFn = VarId (*)(Expansion&, VarId value, VarId factor);

// Slots of the op of a second gradient.
struct SecondSlots {
  absl::string_view value = "X";
  absl::string_view value_grad = "X@GRAD";
  absl::string_view grad = "grad_out";
  absl::string_view grad_grad = "grad_out@GRAD";
};
// Of that of a third one.
struct ThirdSlots {
  absl::string_view value, value_grad;
  absl::string_view grad, grad_grad;  // d and its gradient
  absl::string_view a, a_grad;
  absl::string_view u, w;
};

inline VarId Product(Expansion& ops, VarId x, VarId y) {
  return ops.Add("elementwise_mul", {{"X", x}, {"Y", y}});
}

template <TimesFn First, TimesFn Second, const SecondSlots& kSlots>
absl::Status ExpandSecond(Expansion& ops) {
  const VarId value = ops.Input(kSlots.value);
  const VarId a = ops.Input("grad_x@GRAD");
  ops.Set(kSlots.grad_grad, First(ops, value, a));
  if (!ops.Wants(kSlots.value_grad)) return absl::OkStatus();
  ops.Set(kSlots.value_grad, Second(ops, value, Product(ops, a, ops.Input(kSlots.grad))));
  return absl::OkStatus();
}

template <TimesFn First, TimesFn Second, TimesFn Third, const ThirdSlots& kSlots>
absl::Status ExpandThird(Expansion& ops) {
  const VarId value = ops.Input(kSlots.value);
  const VarId d = ops.Input(kSlots.grad);
  const VarId a = ops.Input(kSlots.a);
  const VarId u = ops.Input(kSlots.u);
  const VarId w = ops.Input(kSlots.w);
  const auto times = [&ops, value](TimesFn h, VarId factor) {
    return factor == Expansion::kAbsent ? factor : h(ops, value, factor);
  };
  const VarId wa = Product(ops, w, a);
  if (ops.Wants(kSlots.value_grad)) {
    const VarId sum =
        ops.Sum({times(Second, Product(ops, u, a)), times(Third, Product(ops, wa, d))});
    ops.SetOrZeros(kSlots.value_grad, sum, value);
  }
  if (ops.Wants(kSlots.grad_grad)) ops.SetOrZeros(kSlots.grad_grad, times(Second, wa), value);
  if (ops.Wants(kSlots.a_grad)) {
    const VarId sum = ops.Sum({times(First, u), times(Second, Product(ops, w, d))});
    ops.SetOrZeros(kSlots.a_grad, sum, value);
  }
  return absl::OkStatus();
}

// The gradient that op `type` gives for X, or Out, and Out@GRAD.
inline VarId GradientOf(Expansion& ops, absl::string_view type, Expansion::Argument value,
                        VarId grad) {
  return ops.Add(type, {value, {"Out@GRAD", grad}}, "X@GRAD");
}

template <TimesFn First, TimesFn Second, const SecondSlots& kSlots>
ExpansionDef SecondDef(absl::string_view type) {
  return {.type = type,
          .inputs = {{kSlots.value}, {kSlots.grad, kOptional}, {"grad_x@GRAD"}},
          .outputs = {{kSlots.value_grad, kOptional}, {kSlots.grad_grad, kOptional}},
          .expand = ExpandSecond<First, Second, kSlots>};
}

template <TimesFn First, TimesFn Second, TimesFn Third, const ThirdSlots& kSlots>
ExpansionDef ThirdDef(absl::string_view type) {
  return {.type = type,
          .inputs = {{kSlots.value},
                     {kSlots.grad, kOptional},
                     {kSlots.a, kOptional},
                     {kSlots.u, kOptional},
                     {kSlots.w, kOptional}},
          .outputs = {{kSlots.value_grad, kOptional},
                      {kSlots.grad_grad, kOptional},
                      {kSlots.a_grad, kOptional}},
          .expand = ExpandThird<First, Second, Third, kSlots>};
}

}  // namespace interp::second_grad
