// Whole training programs of the golden sets, run step by step, whatever the place.
#pragma once

#include <string>
#include <vector>

#include "core/program.h"
#include "core/scope.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/golden.h"

namespace interp::testing {

// Folders of the training programs of all sets.
std::vector<std::string> AllGoldenPrograms();
// Of a folder, as part of a test's name.
std::string NameOfGoldenProgram(const std::string& folder);

// Gives variables of the scope these values.
absl::Status FillScope(const std::vector<NamedTensor>& values, Scope& scope);
// What variables of these names hold, on the host.
std::vector<NamedTensor> ValuesInScope(const std::vector<NamedTensor>& names, Scope& scope);
// The value of that name; an empty one where there is none.
Tensor FindValue(const std::vector<NamedTensor>& tensors, const std::string& name);

// Runs all steps of `program`, which is the golden one or does the same, and compares what is
// fetched and, at the end, what has changed: what differs, a line each. `name`:
// NameOfGoldenProgram.
std::vector<std::string> RunGoldenSteps(const GoldenProgram& golden, const std::string& name,
                                        Program program, const CoreOptions& options);

}  // namespace interp::testing
