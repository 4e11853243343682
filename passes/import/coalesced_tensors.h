#pragma once

#include "passes/pass.h"

namespace interp {

// Keeps the tensors that a coalesce_tensor op has joined alike.
//
// In Paddle the Outputs of that op are slices of FusedOutput: what is written to the one is read
// from the other. Fleet writes training programs so, to add up many gradients over the ranks by one
// collective. Here they have memory of their own, and copies go between them where one is read
// after the other was written:
//
//   coalesce_tensor(Input=[w, b]) -> (Output=[dw, db], FusedOutput=f)
//   ... -> (Out=dw)   ... -> (Out=db)          ... -> (Out=dw)   ... -> (Out=db)
//                                     becomes  join_coalesced(X=[dw, db]) -> (Out=f)
//   c_allreduce_sum(X=f) -> (Out=f)            c_allreduce_sum(X=f) -> (Out=f)
//                                              split_coalesced(X=f, Like=[dw, db]) -> (Out=[dw,
//                                              db])
//   sgd(Grad=dw ...)                           sgd(Grad=dw ...)
//
// A coalesce_tensor all of whose results are overwritten before they are read goes.
//
// A later coalesce_tensor gives its outputs other memory: what they shared is settled before it.
//
// Errors: Unimplemented where an op of another block writes such a tensor; where what is left of
// tensors that shared memory is written after a later coalesce_tensor took some of them; and where
// a FusedOutput still shares its memory with others. Linear time in ops and
// arguments, times the tensors that are joined for ops that run blocks.
absl::StatusOr<Program> KeepCoalescedTensorsAlike(Program program, const PassContext& context);

}  // namespace interp
