// Text that a terminal prints and does not obey.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace interp {

// The text with control characters as \x1b, among them those that UTF-8 has two bytes for, but with
// line ends and tabs. So are bytes that are no UTF-8: names in files may hold anything.
std::string TerminalText(absl::string_view text);

// The same in one line: line ends are \n.
std::string TerminalLine(absl::string_view text);

}  // namespace interp
