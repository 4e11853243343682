// EarlierGradients: the variables of a program that are gradients already, while it is
// differentiated again.
//
// A loss may be made of gradients: paddle.static.gradients gives derivatives of a network, or a
// penalty on them, and their ops are a part of the program like all others. Their names are those
// that new gradients take. So they have other names for as long as new ones are made, x@EARLIER for
// x@GRAD, and then get theirs back. A new gradient whose name is taken is x@GRAD_0, as in Paddle.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

// Thread-safety: none.
class EarlierGradients {
 public:
  // Gives the gradients that ops of block 0 use other names, and makes their ops a part of the
  // forward one: what is behind them is, too. Errors: an op of another block uses one, which is
  // looked for there by its name.
  absl::Status SetAside(Program& program);

  // The variable of that name as long as the gradients are set aside.
  VarId Now(VarId id) const;

  // Undoes it. Errors: a new gradient is to have another name, and an op of another block uses it.
  absl::Status Restore(Program& program);
  // The variable after Restore.
  VarId After(VarId id) const;

 private:
  bool IsNew(const Op& op) const;
  std::string FinalName(const Program& program, const std::string& name) const;

  std::string mark_;  // stands for @GRAD in names that are set aside
  VarId first_new_ = 0;
  absl::flat_hash_map<VarId, VarId> aside_;  // by the variable that is set aside
  absl::flat_hash_map<VarId, VarId> final_;  // of those whose names change in the end
};

}  // namespace interp
