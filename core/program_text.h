// A program as a file in the text form, which programs are read from, too (program_parse.h).
#pragma once

#include <string>

#include "core/program.h"

namespace interp {

// ToText (program_print.h) with the attributes op_role, where an op is not of the forward part, and
// op_role_var: cutting a training program into parts takes them.
std::string SaveProgramText(const Program& program);

}  // namespace interp
