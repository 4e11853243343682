// Feeds and fetches of a run whose plan was read from a file: the plan has decided which there are.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/plan/plan.h"

namespace interp {

// The feeds in the order of the plan's columns. InvalidArgument when one is missing or too many.
absl::StatusOr<std::vector<NamedTensor>> OrderFeeds(const Plan& plan,
                                                    const std::vector<NamedTensor>& feeds);

// InvalidArgument when the plan does not fetch one of `names`.
absl::Status CheckFetched(const Plan& plan, const std::vector<std::string>& names);

}  // namespace interp
