// interp: run and look into Paddle inference programs.
#include <exception>
#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "core/base/catching.h"
#include "core/base/near_names.h"
#include "tools/app.h"
#include "tools/manual.h"

namespace interp {
namespace {

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : CommandsOf(app)) names.push_back(command->get_name());
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
  return InvalidArgument("no flag is named '", flag, "'", HintOf(flag, FlagsOf(command)), see);
}

ExitCode Main(int argc, char** argv) {
  ExitCode exit_code = ExitCode::kOk;
  const std::unique_ptr<CLI::App> app = MakeApp(exit_code);
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream help;
    if (app->exit(error, help, help) == 0) return Show(help.str());
    return Fail(ExitCode::kUsage, Explain(*app, error));
  } catch (...) {
    // Of the system: no thread, no memory.
    const auto error = [exception = std::current_exception()]() -> absl::Status {
      std::rethrow_exception(exception);
    };
    return Fail(ExitCode::kRunFailed, Catching(error));
  }
  return exit_code;
}

}  // namespace
}  // namespace interp

int main(int argc, char** argv) { return static_cast<int>(interp::Main(argc, argv)); }
