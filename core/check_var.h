// What holds for every declared variable, whichever way its program came: from a file, from text or
// from a caller who filled in the structs.
#pragma once

#include "core/program.h"
#include "core/status.h"

namespace interp {

// InvalidArgument unless `var` has at most kMaxRank dims whose product, unknown ones apart, fits
// into memory, and a LoD level in bounds.
absl::Status CheckVar(const Var& var);

}  // namespace interp
