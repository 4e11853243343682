// The gradients that check_finite_and_unscale and update_loss_scaling take as X and give as Out.
#pragma once

#include "core/op_context.h"

namespace interp::optimizer {

// Each output has the shape of its input. InvalidArgument unless there are as many, none empty.
inline absl::Status InferScaledGradients(InferContext& ctx, int x, int out) {
  const auto inputs = ctx.inputs(x);
  const auto outputs = ctx.outputs(out);
  if (inputs.size() != outputs.size()) {
    return InvalidArgument("'X' has ", inputs.size(), " arguments and 'Out' ", outputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr || outputs[i] == nullptr) {
      return InvalidArgument("'", inputs[i] == nullptr ? "X" : "Out", "' has an empty argument");
    }
    outputs[i]->shape = inputs[i]->shape;
    outputs[i]->lod = inputs[i]->lod;
  }
  return absl::OkStatus();
}

}  // namespace interp::optimizer
