// The feed and fetch ops of a program: how its inputs and outputs are named and numbered.
#pragma once

#include <vector>

#include "core/program.h"
#include "core/status.h"

namespace interp {

bool IsFeed(const Op& op);   // "feed"
bool IsFetch(const Op& op);  // "fetch" and "fetch_v2", which mean the same here

// The variables that the feed (fetch) ops of block 0 write (read), in column order, ties in program
// order. A program without feed ops whose input comes from readers has the outputs of its `read`
// ops for feeds (readers.h). Errors: such an op without a column or without its one argument.
absl::StatusOr<std::vector<VarId>> FeedVars(const Program& program);
absl::StatusOr<std::vector<VarId>> FetchVars(const Program& program);

// What a training program takes from outside: FeedVars and, where it has no feed ops, the tensors
// of block 0 that need_check_feed marks or an op reads before any has written them, persistable
// ones apart, in the order of their declarations.
absl::StatusOr<std::vector<VarId>> DataVars(const Program& program);

}  // namespace interp
