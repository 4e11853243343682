// The parameters that `interp run --save` writes after the last run.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/program.h"
#include "core/scope.h"
#include "core/status.h"

namespace interp {

// Which persistable variables to write, and where to.
struct ParametersToSave {
  std::string path;                     // empty: nothing is saved
  std::vector<std::string> names = {};  // sorted
};

// All persistable tensors of the program. InvalidArgument for a path that ends in neither
// .pdiparams nor .npz, for a program that has none, and for a plan that has some for itself
// (CompiledProgram::made_in_runs).
absl::StatusOr<ParametersToSave> ChooseParametersToSave(const std::string& path,
                                                        const Program& program,
                                                        absl::Span<const VarId> made_in_runs = {});

// Writes what the root of `scope` holds, beside the path, and renames it there. A .pdiparams file
// is one that Paddle and `--params` read for the same program: FailedPrecondition when a variable
// has no value, as its records have no names. A .npz file holds the variables that have one. No run
// may be in progress.
absl::Status SaveParameters(const ParametersToSave& parameters, Scope& scope);

}  // namespace interp
