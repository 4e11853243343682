// Inputs of the random ops whose shape may be given as tensors.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "kernels/util/shape_args.h"

namespace interp::random {

std::vector<SlotDef> ShapeInputs();

// Sets the shape of output 0 of an op with ShapeInputs(): by the list of tensors, else by the
// attribute, else, when that is empty, by the one tensor. (Ops that fill constants prefer the
// tensor.) With none of them it is 0-D.
absl::Status SetRandomShape(InferContext& ctx, const IntList& attribute);

}  // namespace interp::random
