// Exit codes of `interp`, and how a command ends early.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "core/status.h"

namespace interp {

enum class ExitCode : int {
  kOk = 0,
  kRunFailed = 1,      // an op failed, a limit was reached, results could not be written
  kUsage = 2,          // wrong flags, feeds or fetches, unreadable feed files
  kMismatch = 3,       // results differ from --expect
  kModelUnusable = 4,  // program or parameters cannot be read, are inconsistent or not supported
  kNotProved = 5,      // `interp verify` found that the plan may disturb itself
  kInterrupted = 130,  // Ctrl-C or SIGTERM; as shells say Ctrl-C
};

// The same as lines of `interp --help`.
absl::string_view ExitCodeHelp();

// What the messages of Fail, Warn and Note start with from now on: which rank this is, where there
// are several.
void SetErrorPrefix(std::string prefix);

// Prints the message to standard error, in one line, and returns `code`.
ExitCode Fail(ExitCode code, const absl::Status& status);

// What a command does: it returns how it ends, or what went wrong. Then the process exits with
// `blame`, which is kUsage until the command says otherwise.
using CommandBody = absl::FunctionRef<absl::StatusOr<ExitCode>(ExitCode& blame)>;
// Runs it; prints what went wrong.
ExitCode RunCommand(CommandBody body);

// Prints "warning: " or "note: " and the text to standard error, in one line.
void Warn(absl::string_view text);
void Note(absl::string_view text);

// Prints the result of a command to standard output and returns `code`, or kRunFailed when not all
// of it could be written. Commands write to standard output through this alone. Files and pipes get
// the bytes as they are, terminals no control characters.
ExitCode Show(absl::string_view text, ExitCode code = ExitCode::kOk);

}  // namespace interp
