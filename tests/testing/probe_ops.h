// ProbeOps: a private registry of made-up ops that can run.
//
// Their results tell everything that went wrong on the way: integer kernels mix every element of
// every input, in order, into each element of the output, together with the op's `tag` attribute,
// so a value read too early, too late, in the wrong layout or from freed memory changes what comes
// out. All kernels call Probe::OnKernel first.
//
//   mix(X...) -> Out             Out has X[0]'s shape; int64 and int32; inplace X[0]
//   source() -> Out {shape}      values made of the tag
//   view(X) -> Out {shape}       reshape; one -1 allowed; a view
//   update(Param, X) -> ParamOut Param mixed with X, in place
//   split2(X) -> A, B            two outputs
//   shape_of(X) -> Out           X's dims; X is kNoNeedBuffer
//   resize_to(X, Shape) -> Out   as many elements as Shape's value says; Shape is kValueInInfer
//   grow(X, Y) -> Out            as many elements as both together, 24 at most
//   dynamic(X) -> Out            1 to 7 elements, as X's values decide; dynamic_outputs
//   image(X) -> Out              prefers channels-last; mixes the memory order in if that is wrong
//   follow(X...) -> Out          takes the layout of its inputs
//   half(X) -> Out               X / 2; float32, float64
//   random() -> Out {shape}      the words of its random stream
//   scratch() -> Out {shape}     the same by way of a workspace
//   push(X, Array) -> ArrayOut   appends X to a tensor array
//   gather(Array) -> Out         one vector of all elements
//   last(Array) -> Out           the last element, whose memory it shares
//   to_rows(X) -> Out            selected rows, 0 to 3, as X's values decide
//   join_rows(A, B) -> Out       the rows of both, 12 at most
//   from_rows(X) -> Out          a vector of two elements, made of all rows and their values
//   repeat(Condition) -> Steps   runs its block up to three times, as Condition says before each
//   when(Condition) -> Steps     runs its block when Condition is odd
//   back(Steps) -> StepsOut      runs its block on each of the steps, the last first
//   scan(Rows, State) -> Out     runs its block for up to three rows, with a state; one vector of
//                                all that `names[3]` was
//   feed, fetch, cast, transfer_layout, assign, memcpy_h2d, memcpy_d2h: as the interpreter
//   expects them
//   read, c_allreduce, c_sync_comm_stream, send_v2, coalesce_tensor: for implicit orders
#pragma once

#include "core/op_def.h"

namespace interp::testing {

const OpRegistry& ProbeOps();

}  // namespace interp::testing
