// Gradients of gradient ops, for losses that are made of gradients. That of
//
//   tanh_grad(Out=y, Out@GRAD=d) -> (X@GRAD=g)
//
// is
//
//   tanh_grad_grad(Out=y, grad_out=d, grad_x@GRAD=g@GRAD) -> (Out@GRAD=y@GRAD,
//   grad_out@GRAD=d@GRAD)
//
// with the same attributes. Types and slots are those of Paddle's makers of second gradients. Third
// gradients need none: append_backward expands second ones into ops that have gradients.
#pragma once

#include <array>

#include "absl/strings/string_view.h"
#include "core/gradient.h"
#include "core/op_def.h"

namespace interp {

// A slot of the second gradient, and the slot of the first one that it belongs to.
struct SecondSlot {
  absl::string_view slot;
  absl::string_view of;
};

// Places that are not needed stay empty.
struct SecondGradient {
  absl::string_view type;
  // Inputs: arguments of the first gradient, of several for one slot the first that there is.
  std::array<SecondSlot, 9> values = {};
  std::array<SecondSlot, 3> incoming = {};  // inputs: gradients of its outputs
  std::array<SecondSlot, 3> results = {};   // outputs: gradients of its inputs
  std::array<SecondSlot, 1> kept = {};      // outputs: its inputs, which get the same value again
};

// Adds the op.
absl::Status AddSecondGradient(const SecondGradient& second, GradientMaker& maker);

template <const SecondGradient& kSecond>
absl::Status MakeSecondGradient(GradientMaker& maker) {
  return AddSecondGradient(kSecond, maker);
}

// The definition of a gradient op, with its gradient.
template <const SecondGradient& kSecond>
OpDef WithSecond(OpDef def) {
  def.gradient = {.make = MakeSecondGradient<kSecond>};
  return def;
}

}  // namespace interp
