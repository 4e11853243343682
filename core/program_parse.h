// Text -> Program, the inverse of ToText (program_print.h describes the form).
//
// For tests, examples and experiments by hand: programs of models are read from their own format.
// Blank lines are skipped, as is a line from '#' on when '#' is its first character but blanks.
#pragma once

#include "absl/strings/string_view.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

// The program that `text` describes. ToText(*ParseProgram(ToText(p))) equals ToText(p).
// The form is checked, and that variables can exist (check_var.h): any names and op types do, and
// ops may be nonsense (see passes/verify.h). Errors are InvalidArgument and start with "line 3: ".
absl::StatusOr<Program> ParseProgram(absl::string_view text);

}  // namespace interp
