// CopyBeside: an op that copies a variable next to another op.
#pragma once

#include "absl/strings/string_view.h"
#include "core/program.h"

namespace interp {

// type(X=from) -> (Out=to), of the part of training and the device that `op` has.
Op CopyBeside(const Op& op, absl::string_view type, VarId from, VarId to);

}  // namespace interp
