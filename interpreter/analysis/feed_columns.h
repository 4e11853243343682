// FindFeedsAndFetches: what a plan takes and gives.
#pragma once

#include "core/program.h"
#include "core/status.h"
#include "interpreter/analysis/blocks.h"
#include "interpreter/plan/plan.h"

namespace interp {

// Reads columns, names and types of feeds and fetches off the feed and fetch ops of block 0 into
// `plan`, that block's, whose variables are there.
absl::Status FindFeedsAndFetches(const Program& program, const BlockTree& tree, Plan& plan);

}  // namespace interp
