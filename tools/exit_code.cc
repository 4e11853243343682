#include "tools/exit_code.h"

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/errno_status.h"

namespace interp {

namespace {

std::string& ErrorPrefix() {
  static std::string prefix;
  return prefix;
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
  // In one piece: ranks share standard error.
  std::string message = ErrorPrefix();
  for (const char c : status.message()) {
    // Names in files may hold anything, which is not for a terminal to obey.
    const bool plain = (c & 0xe0) != 0 && c != 0x7f;
    if (plain || c == '\n' || c == '\t') {
      message.push_back(c);
    } else {
      absl::StrAppendFormat(&message, "\\x%02x", static_cast<unsigned char>(c));
    }
  }
  message += '\n';
  std::fwrite(message.data(), 1, message.size(), stderr);
  return code;
}

ExitCode Show(absl::string_view text, ExitCode code) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return code;
  return Fail(ExitCode::kRunFailed, ErrnoStatus(errno, "cannot write to standard output"));
}

}  // namespace interp
