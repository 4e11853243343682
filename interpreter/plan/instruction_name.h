// How messages name an instruction.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "interpreter/plan/instruction.h"

namespace interp {

// "op #17 conv2d", by the op's position in the program after the passes, or "inserted cast".
inline std::string NameOf(const Instruction& instruction) {
  return instruction.op_index >= 0
             ? absl::StrCat("op #", instruction.op_index, " ", instruction.op_type)
             : absl::StrCat("inserted ", instruction.op_type);
}

}  // namespace interp
