#pragma once

#include "passes/pass.h"

namespace interp {

inline constexpr absl::string_view kExpandOpsPass = "expand_ops";

// Puts what ops are made of in the place of those that are a few others (core/expansion.h):
//
//   elementwise_add_grad_grad(DOut=d, DDX=a, DDY=b) -> (DDOut=c) {axis=-1}
//
// becomes
//
//   elementwise_add(X=a, Y=b) -> (Out=t) {axis=-1}
//   assign(X=t) -> (Out=c)
//
// Values between them are variables that no block declares. Linear time.
absl::StatusOr<Program> ExpandOps(Program program, const PassContext& context);

}  // namespace interp
