#pragma once

#include "passes/pass.h"

namespace interp {

// The name by which the pass is switched on.
inline constexpr absl::string_view kAddToPass = "addto";

// Accumulates gradients as they are made, instead of keeping all of them for one sum.
//
//   a_grad(...) -> (X@GRAD=g0)              a_grad(...) -> (X@GRAD=g0)
//   b_grad(...) -> (X@GRAD=g1)              b_grad(...) -> (X@GRAD=g1)
//   c_grad(...) -> (X@GRAD=g2)    becomes   sum(X=[g0, g1]) -> (Out=g@ADDTO@1)
//   sum(X=[g0, g1, g2]) -> (Out=g)          c_grad(...) -> (X@GRAD=g2)
//                                           sum(X=[g@ADDTO@1, g2]) -> (Out=g)
//
// The inplace pass then puts g@ADDTO@1 and g into the memory of g0, so g1 and g2 live only until
// they are added. Also, where the second summand of a sum dies there and the first does not, the
// two change places, so that one of them can be written over. Both keep every bit of the result:
// sums are taken from the left, and the first addition commutes.
//
// Done for sums of block 0 over two or more different tensors of one dtype (float32, float64 or
// integers: narrower floats are rounded at each step) that this block alone writes, once each.
// Split are only sums whose first or second summand dies there. Off by default: it pays when many
// large gradients meet, as for weights shared by the steps of an unrolled network; else it costs
// reading and writing the partial sums. Paddle's pass of this name also lets conv2d_grad add to its
// output (use_addto); no kernel here does, so that is left out. Linear time.
absl::StatusOr<Program> AddTo(Program program, const PassContext& context);

}  // namespace interp
