#pragma once

#include "passes/pass.h"

namespace interp {

// Lets what share_data hands on follow the variable that it comes from.
//
// In Paddle the two share memory, and what is written to the one is read from the other.
// Dygraph-to-static relies on it: x = f(x.detach()) in a loop becomes
//
//   share_data(X=x) -> (Out=detached)
//   while(X=[x, detached]) -> (Out=x)        with, in the block:   f(X=detached) -> (Out=y)
//                                                                  assign(X=y) -> (Out=x)
//
// where the block is to read what the trip before has written. So share_data is repeated behind
// the ops that write x what somebody may read as `out`; a parameter's persistable
// detached value ends as the update leaves the parameter. A loop keeps it for its gradient as it
// was when a trip started, as Paddle does. Blocks of gradients write to copies.
//
// What is written is taken to have the size of what was there: Paddle takes other memory for more.
// An op that gives x the memory of others ends the sharing. Left as they are: results that
// something else writes, and values that states of a recurrence name or that several blocks
// declare. Time: that of what is added, and n log n. InvalidArgument where that is too much.
absl::StatusOr<Program> FollowDetachedValues(Program program, const PassContext& context);

}  // namespace interp
