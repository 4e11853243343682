#pragma once

#include "passes/pass.h"

namespace interp {

// Gives values whose dtype would hang on the branch taken, or on whether a loop runs at all, one
// dtype that holds them all. Paddle finds types while it runs, and its dygraph-to-static declares
// such a variable as what it was first:
//
//   fill_constant() -> (Out=s) {dtype=int64, value=1}
//   while(X=x, ...) -> (Out=s)          with, in the block:   elementwise_add(X=s, Y=x) -> (Out=t)
//                                                             assign(X=t) -> (Out=s)
//
// declares `s` and `t` as float32 then. Variables that blocks write to and others see are declared
// anew; casts go before select_input and write_to_array, whose other choices and other elements
// have the wider type. Integers are wider than bool, floats wider than integers, float64 wider than
// float32; floats of 16 bits never become wider, as ops without such kernels make float32 of them.
// A variable that one block makes and others may read is declared as its ops make it, where Paddle
// declares whole numbers for floats or the other way round (Reserve of rnn, Indices of kthvalue).
// Persistable variables keep their type. Linear time where no type changes.
absl::StatusOr<Program> WidenBranchDTypes(Program program, const PassContext& context);

// The dtype of these two that holds the values of both; the first where neither does.
DType Wider(DType a, DType b);

}  // namespace interp
