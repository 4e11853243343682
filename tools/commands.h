// The commands of `interp`. Each adds itself to the command line and, when chosen, stores its exit
// code; one file each, cmd_<name>.cc.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/exit_code.h"

namespace interp {

void AddRunCommand(CLI::App& app, ExitCode& exit_code);
void AddBenchCommand(CLI::App& app, ExitCode& exit_code);
void AddCompareCommand(CLI::App& app, ExitCode& exit_code);
void AddTrainCommand(CLI::App& app, ExitCode& exit_code);
void AddBackwardCommand(CLI::App& app, ExitCode& exit_code);
void AddPackCommand(CLI::App& app, ExitCode& exit_code);
void AddInfoCommand(CLI::App& app, ExitCode& exit_code);
void AddDumpCommand(CLI::App& app, ExitCode& exit_code);
void AddVerifyCommand(CLI::App& app, ExitCode& exit_code);
void AddCompileCommand(CLI::App& app, ExitCode& exit_code);
void AddPassesCommand(CLI::App& app, ExitCode& exit_code);
void AddOpsCommand(CLI::App& app, ExitCode& exit_code);

}  // namespace interp
