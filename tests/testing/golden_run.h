// Golden cases run through the interpreter, whatever the place.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "interpreter/interpreter_core.h"
#include "tests/testing/golden.h"

namespace interp::testing {

// Folders of all cases by the op type they are filed under.
const std::map<std::string, std::vector<std::string>>& GoldenCasesByOp();

// The op types among them that are registered.
std::vector<std::string> GoldenOpTypes();

// Whether every op of the case is registered and gives its results in one order alone. Eigenvalues
// have none: tests/kernels/linalg/eig_test.cc compares them.
bool IsComparable(const GoldenCase& golden);

absl::StatusOr<std::unique_ptr<InterpreterCore>> MakeGoldenCore(const GoldenCase& golden,
                                                                const CoreOptions& options = {});

// What one run gives that the case does not expect, a line each; empty when all is right.
std::vector<std::string> RunGolden(InterpreterCore& core, const GoldenCase& golden);

// For cases with something wrong: little memory, and none that is kept for later, so that the
// sanitizer sees the end of each tensor.
CoreOptions DamagedOptions();

// Runs the core twice on those of `feeds` that it names, and on empty tensors for what is missing.
absl::Status RunDamagedTwice(InterpreterCore& core, const std::vector<NamedTensor>& feeds);

}  // namespace interp::testing
