// Feeds and fetches of a run whose plan was read from a file: the plan has decided which there are.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/load_model.h"
#include "interpreter/plan/plan.h"

namespace interp {

// The feeds in the order of the plan's columns. InvalidArgument when one is missing or too many.
absl::StatusOr<std::vector<NamedTensor>> OrderFeeds(const Plan& plan,
                                                    const std::vector<NamedTensor>& feeds);

// Of which kind the devices of a run of the model with these options are, kCpu if it has none.
PlaceKind DeviceKindOf(const Model& model, const CoreOptions& options);

// InvalidArgument when the plan does not fetch one of `names`.
absl::Status CheckFetched(const Plan& plan, const std::vector<std::string>& names);

}  // namespace interp
