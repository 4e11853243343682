// A gradient that is a multiple of another, which Paddle writes as the op `scale`.
#pragma once

#include "core/gradient.h"

namespace interp {

// Adds to = factor * from; nothing where `to` is @EMPTY@.
inline void AddScaledGradient(GradientMaker& maker, VarId from, VarId to, float factor) {
  if (to == maker.Empty()) return;
  Op& scale = maker.Add("scale");
  AddInput(scale, "X", {from});
  AddOutput(scale, "Out", {to});
  SetAttr(scale, "scale", factor);
}

}  // namespace interp
