// The gradient of an op that makes Out of Input and of further inputs without gradient: it takes
// all of them, Out@GRAD behind them, and gives Input@GRAD.
#pragma once

#include <utility>
#include <vector>

#include "core/op_def.h"

namespace interp {

// The inputs of the gradient op, from those of the op.
inline std::vector<SlotDef> WithOutGrad(std::vector<SlotDef> inputs, int gradient_flags) {
  inputs.push_back({"Out@GRAD", gradient_flags});
  return inputs;
}

inline GradientDef InputGradient(const std::vector<SlotDef>& inputs) {
  GradientDef gradient;
  for (const SlotDef& slot : inputs) gradient.inputs.push_back(slot.name);
  gradient.inputs.emplace_back("Out@GRAD");
  gradient.outputs = {"Input@GRAD"};
  return gradient;
}

}  // namespace interp
