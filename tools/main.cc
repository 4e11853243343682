// interp: run and look into Paddle inference programs.
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "core/near_names.h"
#include "tools/commands.h"
#include "tools/load_ops_flag.h"

namespace interp {
namespace {

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> FlagNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string HintOf(const std::string& name, const std::vector<std::string>& names) {
  return NearNamesHint(name, std::vector<absl::string_view>(names.begin(), names.end()));
}

// What is wrong with a command line that could not be parsed.
absl::Status Explain(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  if (chosen.empty()) {
    const std::string see = "; `interp --help` lists the commands";
    if (unknown.empty()) return InvalidArgument(error.what(), see);
    const bool flag = absl::StartsWith(unknown[0], "-");
    return InvalidArgument("no ", flag ? "flag" : "command", " is named '", unknown[0], "'",
                           HintOf(unknown[0], CommandNames(app)), see);
  }
  const CLI::App& command = *chosen[0];
  const std::string see = absl::StrCat("; see `interp ", command.get_name(), " --help`");
  if (unknown.empty()) return InvalidArgument(error.what(), see);
  if (!absl::StartsWith(unknown[0], "-")) {
    return InvalidArgument("unexpected argument '", unknown[0], "'", see);
  }
  const std::string flag = unknown[0].substr(0, unknown[0].find('='));
  return InvalidArgument("no flag is named '", flag, "'", HintOf(flag, FlagNames(command)), see);
}

ExitCode Main(int argc, char** argv) {
  CLI::App app("Runs and explains Paddle programs.", "interp");
  app.require_subcommand(1);
  app.footer(std::string(ExitCodeHelp()));
  app.set_version_flag("--version", INTERP_VERSION);
  ExitCode exit_code = ExitCode::kOk;
  AddRunCommand(app, exit_code);
  AddBenchCommand(app, exit_code);
  AddCompareCommand(app, exit_code);
  AddTrainCommand(app, exit_code);
  AddBackwardCommand(app, exit_code);
  AddInfoCommand(app, exit_code);
  AddDumpCommand(app, exit_code);
  AddVerifyCommand(app, exit_code);
  AddCompileCommand(app, exit_code);
  AddPassesCommand(app, exit_code);
  AddOpsCommand(app, exit_code);
  for (CLI::App* const command : app.get_subcommands({})) AddLoadOpsFlag(*command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream help;
    if (app.exit(error, help, help) == 0) return Show(help.str());
    return Fail(ExitCode::kUsage, Explain(app, error));
  }
  return exit_code;
}

}  // namespace
}  // namespace interp

int main(int argc, char** argv) { return static_cast<int>(interp::Main(argc, argv)); }
