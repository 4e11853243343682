// MakeUnaryOp: the ops that passes put in most often.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "core/edit_op.h"
#include "core/program.h"

namespace interp {

// An op that reads X and makes Out.
inline Op MakeUnaryOp(absl::string_view type, VarId x, VarId out) {
  Op op;
  op.type = std::string(type);
  AddInput(op, "X", {x});
  AddOutput(op, "Out", {out});
  return op;
}

}  // namespace interp
