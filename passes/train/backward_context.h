// BackwardContext: what the parts of append_backward share, of the program and of all its blocks.
#pragma once

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/gradient.h"
#include "core/op_def.h"
#include "core/program.h"
#include "passes/declarations.h"
#include "passes/train/gradient_flow.h"

namespace interp {

struct BackwardContext {
  Program& program;
  const OpRegistry& ops;
  const GradientFlow& flow;
  Declarations declarations;
  VarId empty;
  // How many names the gradients of a variable have got beside the plain one.
  absl::flat_hash_map<VarId, int> renamed = {};

  // The variable that has the plain name of the gradient.
  VarId GradientOf(VarId var) { return program.Intern(GradientName(program.NameOf(var))); }
  // Whether it depends on what gradients are asked for.
  bool Wants(VarId id) const { return id != empty && flow.depends[id]; }
  // As ops of the block see it, or no op.
  bool IsTensor(int32_t block, VarId var) {
    const Var* const declared = declarations.Find(block, var);
    return declared == nullptr || declared->kind == VarKind::kLodTensor;
  }
};

}  // namespace interp
