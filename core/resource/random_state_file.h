// The state of random numbers in a file, so that a run can be continued in another process:
//
//   interp random state 1
//   seed 7
//   stream 0
//   step 12
#pragma once

#include <string>

#include "core/resource/random_stream.h"
#include "core/status.h"

namespace interp {

// DataLoss for a file that says something else.
absl::StatusOr<RandomState> ReadRandomState(const std::string& path);
// Replaces the file: readers see the old state or the new one.
absl::Status WriteRandomState(const std::string& path, const RandomState& state);

}  // namespace interp
