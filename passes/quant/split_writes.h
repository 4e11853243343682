// SplitWrites: for programs whose ops write over their own inputs, or over what they wrote before.
#pragma once

#include "core/op_def.h"
#include "core/program.h"

namespace interp {

// Gives each value of a variable that ops change in place, or that quantize_linear or
// dequantize_linear make again, a name of its own:
//
//   conv2d(..) -> (Output=a)          conv2d(..) -> (Output=a)
//   relu(X=a) -> (Out=a)       is     relu(X=a) -> (Out=a.1)
//   pool2d(X=a) -> (Out=b)            pool2d(X=a.1) -> (Out=b)
//
// so that passes, which ask for one write, see chains. Leaves alone what is fed, fetched,
// persistable or used by blocks, and of what quantizers make again that of which X is declared with
// other dims. Linear time.
Program SplitWrites(Program program, const OpRegistry& ops);

// The same of what quantizers make again alone: an op that changes a value in place may give it a
// shape that is not the declared one.
Program SplitQuantizers(Program program, const OpRegistry& ops);

}  // namespace interp
