// The command line of `interp` as a whole.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/exit_code.h"

namespace interp {

// All commands. What is chosen stores its exit code, which has to outlive the result.
std::unique_ptr<CLI::App> MakeApp(ExitCode& exit_code);

}  // namespace interp
