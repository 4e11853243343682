#include "tools/exit_code.h"

#include <cstdio>
#include <string>

namespace interp {

absl::string_view ExitCodeHelp() {
  return "Exit codes:\n"
         "  0  all went well\n"
         "  1  the run failed: an op's error, a limit, NaN found, results not written\n"
         "  2  wrong usage: flags, feeds, fetches, unreadable feed files\n"
         "  3  results differ from --expect\n"
         "  4  the program or its parameters cannot be read or are not supported\n"
         "  5  `interp verify` could not prove the plan\n";
}

ExitCode Fail(ExitCode code, const absl::Status& status) {
  const std::string message(status.message());
  std::fprintf(stderr, "%s\n", message.c_str());
  return code;
}

}  // namespace interp
