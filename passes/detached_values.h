#pragma once

#include "passes/pass.h"

namespace interp {

inline constexpr absl::string_view kDetachedValuesPass = "detached_values";

// Lets ops read what share_data hands on where it comes from, if that is written again.
//
// In Paddle the two share memory, and what is written to the one is read from the other.
// Dygraph-to-static relies on it: x = f(x.detach()) in a loop becomes
//
//   share_data(X=x) -> (Out=detached)
//   while(X=[x, detached]) -> (Out=x)        with, in the block:   f(X=detached) -> (Out=y)
//                                                                  assign(X=y) -> (Out=x)
//
// where the block reads x then. What is written is taken to have the size of what was there: Paddle
// takes other memory for more. Left as they are: results that are fetched or persistable or that
// something else writes; values that an op gives the memory of others, that states of a recurrence
// name, or that other blocks declare under the same name; and programs with gradients of blocks.
// Linear time.
absl::StatusOr<Program> ReadDetachedValues(Program program, const PassContext& context);

}  // namespace interp
