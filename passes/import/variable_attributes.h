#pragma once

#include "passes/pass.h"

namespace interp {

inline constexpr absl::string_view kVariableAttributesPass = "variable_attributes";

// Turns attributes that are variables into inputs.
//
//   cumsum(X=x) -> (Out=y) {axis=var "a"}   becomes   cumsum(X=x, AxisTensor=a) -> (Out=y)
//
// Paddle takes a variable, or a list of them, for the value of some attributes (AttrType VAR and
// VARS). For interp what an op reads is in its slots, so that everything that follows reads of
// variables sees these, too. Ops without a slot for such an attribute keep it, and are refused when
// they are bound, but for gradients that have no use for it. Linear time.
absl::StatusOr<Program> BindVariableAttributes(Program program, const PassContext& context);

}  // namespace interp
