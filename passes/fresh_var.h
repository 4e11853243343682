// FreshVar: names that a program does not have yet, for the variables that passes add.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "core/program.h"

namespace interp {

// The variable `name`, with as many '_' behind it as it takes.
VarId FreshVar(Program& program, std::string name);

// The variable whose name is `stem` and a number, the first from `next` on; `next` goes behind it.
VarId FreshVar(Program& program, absl::string_view stem, int64_t& next);

}  // namespace interp
