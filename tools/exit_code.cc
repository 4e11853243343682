#include "tools/exit_code.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/errno_status.h"
#include "core/base/terminal_text.h"

namespace interp {

namespace {

std::string& ErrorPrefix() {
  static std::string prefix;
  return prefix;
}

// In one piece: ranks share standard error.
void PrintLine(absl::string_view kind, absl::string_view text) {
  const std::string line = absl::StrCat(ErrorPrefix(), kind, TerminalLine(text), "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void SetErrorPrefix(std::string prefix) { ErrorPrefix() = std::move(prefix); }

absl::string_view ExitCodeHelp() {
  return "Exit codes:\n"
         "  0  all went well\n"
         "  1  the run failed: an op's error, a limit, NaN found, results not written\n"
         "  2  wrong usage: flags, feeds, fetches, unreadable feed files\n"
         "  3  results differ from --expect, or `interp compare` found a difference\n"
         "  4  the program or its parameters cannot be read or are not supported\n"
         "  5  `interp verify` could not prove the plan\n"
         "  130  interrupted with Ctrl-C or SIGTERM: `interp run` shows what was measured until "
         "then, `interp train` writes a checkpoint\n";
}

ExitCode Fail(ExitCode code, const absl::Status& status) {
  PrintLine("", status.message());
  return code;
}

ExitCode RunCommand(CommandBody body) {
  ExitCode blame = ExitCode::kUsage;
  const absl::StatusOr<ExitCode> end = body(blame);
  return end.ok() ? *end : Fail(blame, end.status());
}

void Warn(absl::string_view text) { PrintLine("warning: ", text); }

void Note(absl::string_view text) { PrintLine("note: ", text); }

ExitCode Show(absl::string_view text, ExitCode code) {
  std::string plain;
  if (isatty(STDOUT_FILENO) != 0) text = plain = TerminalText(text);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return code;
  return Fail(ExitCode::kRunFailed, ErrnoStatus(errno, "cannot write to standard output"));
}

}  // namespace interp
