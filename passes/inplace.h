#pragma once

#include "passes/pass.h"

namespace interp {

// Lets outputs use the memory of inputs: over a dying input, or as a view of a live one.
//
//   relu(X=a) -> (Out=b)          becomes   relu(X=a) -> (Out=b) inplace(X->Out)
//   reshape2(X=a) -> (Out=b)      becomes   reshape2(X=a) -> (Out=b) inplace(X->Out)
//
// Candidates are the pairs OpDef lists as `inplace` (relu) and `view` (reshape2). Variables joined
// by pairs form a group that shares memory. A pair is taken when
//   - both are tensors declared with one dtype, of sizes that can be equal, used by one block only;
//   - the output is not persistable and its first use is this op;
//   - inplace: no variable of the input's group is used after this op, this op reads the group
//     once, and nobody else holds its memory: it was written by this block, not fed, not
//     persistable, not put into or taken from a tensor array;
//   - view: no variable of the two groups is written after this op.
// An input serves one output and an output takes one input; views are tried first, then pairs in
// the order of OpDef. Earlier readers of the memory are ordered before the op by the dependency
// analysis; sizes are compared again at run time, when they are known. A fetched variable may take
// memory, but nothing is written over it.
//
// Replaces all pairs the program had. Adds, removes and reorders no ops. Linear time.
absl::StatusOr<Program> MarkInplace(Program program, const PassContext& context);

}  // namespace interp
