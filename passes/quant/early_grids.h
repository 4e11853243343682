#pragma once

#include "passes/pass.h"

namespace interp {

// Puts values on their grid before ops that choose or move values, which so go through a fourth of
// the bytes, and which give the very same values then: grids keep the order of numbers.
//
//   pool2d(X=x) -> (Out=y) {pooling_type="max"}
//   quantize_int8(X=y, Scale=s) -> (Out=z)
// becomes
//   quantize_int8(X=x, Scale=s) -> (Out=x.int8)
//   pool2d(X=x.int8) -> (Out=z) {pooling_type="max"}
//
// The same of `concat`, each of whose inputs is put on the grid. What makes x is then often a
// convolution that stores int8 itself. A pool has more values to put there than come out of it, so
// it has to be the only reader of x; and none of its windows may lie in the padding alone. Ops of
// PassContext::float32_ops stay. Part of the pass `int8`. Linear time.
Program QuantizeEarlier(Program program, const PassContext& context);

}  // namespace interp
