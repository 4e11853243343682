// Names of variables on the command line and in files. A variable's name may contain any character,
// so whole names are tried before anything is split off.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/program.h"
#include "core/status.h"
#include "passes/pipeline.h"

namespace interp {

// Each element is the name of a variable or several of them joined by commas. NotFound, with near
// names, for what is neither.
absl::StatusOr<std::vector<std::string>> ResolveNames(const Program& program,
                                                      const std::vector<std::string>& arguments);

// What to fetch: the names in `arguments`, see ResolveNames, or where there are none what the
// program itself fetches, which may be nothing.
absl::StatusOr<std::vector<std::string>> FetchNames(const Program& program,
                                                    const std::vector<std::string>& arguments);

// For passes: what --feed and --fetch name, see ResolveNames; where they name nothing, the program
// says it.
absl::StatusOr<PassContext> ContextFor(const Program& program,
                                       const std::vector<std::string>& feeds,
                                       const std::vector<std::string>& fetches);

// InvalidArgument, with `hint` behind it, for fetches that show nothing: what passes prune would
// leave no op. `model` is how the message names the program.
absl::Status CheckFetchesAny(absl::string_view model, const std::vector<std::string>& fetches,
                             absl::string_view hint = "");

// The same for a run that is only timed, compared or compiled: a program that fetches nothing has
// to do something that is seen, such as to write a persistable variable, unless `passes` prune
// nothing.
absl::Status CheckSeen(absl::string_view model, const Program& program,
                       const std::vector<std::string>& fetches, const PipelineOptions& passes);

// NotFound unless the program has a variable of that name.
absl::Status CheckName(const Program& program, absl::string_view name);

// Splits "name=value" at the first '=' that follows the name of a variable, else at the first '='.
// nullopt when there is no '='.
std::optional<std::pair<std::string, std::string>> SplitAssignment(const Program& program,
                                                                   absl::string_view argument);

// The name with '/' replaced by '_': what a file of this variable is called, without ".npy".
std::string FileStem(absl::string_view variable);

// The variable that a file called `stem`.npy is for: the one of that name, else the only one with
// this FileStem. `stem` itself when there is none.
std::string VariableOfFile(const Program& program, const std::string& stem);

}  // namespace interp
