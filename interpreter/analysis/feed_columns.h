// FindFeedsAndFetches: what a plan takes and gives.
#pragma once

#include "core/program.h"
#include "core/status.h"
#include "interpreter/plan.h"

namespace interp {

// Reads columns, names and types of feeds and fetches off the feed and fetch ops of block 0 into
// `plan`.
absl::Status FindFeedsAndFetches(const Program& program, Plan& plan);

}  // namespace interp
