#include "tools/app.h"

#include "tools/commands.h"
#include "tools/load_ops_flag.h"
#include "tools/version.h"

namespace interp {
namespace {

// In scripts an empty value comes from a variable that is not set: it is not as if the flag had
// not been given.
void RefuseEmptyValues(CLI::App& command) {
  const CLI::Validator not_empty(
      [](std::string& value) { return std::string(value.empty() ? "the value is empty" : ""); },
      "");
  for (CLI::Option* const option : command.get_options()) {
    if (option->get_items_expected_min() == 1) option->check(not_empty);
  }
}

}  // namespace

std::unique_ptr<CLI::App> MakeApp(ExitCode& exit_code) {
  auto app = std::make_unique<CLI::App>("Runs and explains Paddle programs.", "interp");
  app->require_subcommand(1);
  app->footer(std::string(ExitCodeHelp()));
  app->set_version_flag("--version", VersionText,
                        "say which interp this is, how it was built and what it runs on");
  AddRunCommand(*app, exit_code);
  AddBenchCommand(*app, exit_code);
  AddCompareCommand(*app, exit_code);
  AddTrainCommand(*app, exit_code);
  AddBackwardCommand(*app, exit_code);
  AddPackCommand(*app, exit_code);
  AddInfoCommand(*app, exit_code);
  AddDumpCommand(*app, exit_code);
  AddVerifyCommand(*app, exit_code);
  AddCompileCommand(*app, exit_code);
  AddPassesCommand(*app, exit_code);
  AddOpsCommand(*app, exit_code);
  for (CLI::App* const command : app->get_subcommands({})) {
    AddLoadOpsFlag(*command);
    RefuseEmptyValues(*command);
  }
  return app;
}

}  // namespace interp
