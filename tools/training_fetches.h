// What a step of training shows.
#pragma once

#include <string>
#include <vector>

#include "core/program.h"
#include "core/status.h"

namespace interp {

// The variables of --fetch, as ResolveNames finds them; without any what the program fetches
// itself, and without that its loss, as attribute op_role marks it. Errors name --fetch.
absl::StatusOr<std::vector<std::string>> TrainingFetches(const Program& program,
                                                         const std::vector<std::string>& asked);

}  // namespace interp
