// The sum of arrays, always in the same order.
#pragma once

#include "core/op_def.h"

namespace interp {

// X[0..n) -> Out: the elements summed as a tree, (x0 + x1) + (x2 + x3), ..., whose form depends on
// n alone: the same bits wherever and whenever it runs. In no registry: it is for what the core
// does itself. All inputs have one shape and one dtype of numbers; a sum of floats of 16 bits is
// rounded once.
const OpDef& SumArraysDef();

}  // namespace interp
