// interp: run and look into Paddle inference programs.
#include <string>

#include "tools/commands.h"

int main(int argc, char** argv) {
  using namespace interp;  // NOLINT(google-build-using-namespace): this file is only main
  CLI::App app("Runs and explains Paddle programs.", "interp");
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  app.footer(std::string(ExitCodeHelp()));
  app.set_version_flag("--version", INTERP_VERSION);
  ExitCode exit_code = ExitCode::kOk;
  AddRunCommand(app, exit_code);
  AddTrainCommand(app, exit_code);
  AddBackwardCommand(app, exit_code);
  AddInfoCommand(app, exit_code);
  AddDumpCommand(app, exit_code);
  AddVerifyCommand(app, exit_code);
  AddCompileCommand(app, exit_code);
  AddOpsCommand(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // exit() prints the message, or the help that was asked for.
    return static_cast<int>(app.exit(error) == 0 ? ExitCode::kOk : ExitCode::kUsage);
  }
  return static_cast<int>(exit_code);
}
