#pragma once

#include "passes/pass.h"

namespace interp {

inline constexpr absl::string_view kPythonLayersPass = "python_layers";

// Puts the ops of Python layers in the place of the layers:
//
//   pylayer(Input=x) -> (Out=y) {blocks=blocks:[1]}     block 1: assign(X=t) -> (Out=y)
//   pylayer_grad(Input=x, Out@GRAD=y@GRAD) -> (Input@GRAD=g) {backward_block=block:2}
//
// become the ops of blocks 1 and 2, which are left empty. What block 2 calls x@GRAD is `g` then;
// one that it does not write is zero. Variables of the blocks become variables of the block around
// them, under another name where that has one of theirs. Linear time. (Paddle:
// fluid/operators/controlflow/pylayer_op.cc, python/paddle/static/nn/static_pylayer.py.)
absl::StatusOr<Program> InlinePythonLayers(Program program, const PassContext& context);

}  // namespace interp
