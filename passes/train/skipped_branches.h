// SkippedBranches: the gradients of what a branch overwrites where it runs, and what passes it by
// where it does not.
#pragma once

#include <vector>

#include "core/program.h"
#include "core/status.h"
#include "passes/inserted_ops.h"
#include "passes/train/backward_context.h"
#include "passes/train/forward_versions.h"
#include "passes/train/gradient_sums.h"

namespace interp {

// Of the branches (conditional_block) of one block, from the last to the first. Thread-safety:
// none.
class SkippedBranches {
 public:
  SkippedBranches(BackwardContext& context, int32_t block, GradientSums& sums,
                  ForwardVersions& versions, InsertedOps& noted)
      : context_(context), block_(block), sums_(sums), versions_(versions), noted_(noted) {}

  // The variables that the block of op `index` overwrites where it runs, and that are what they
  // were before, with their gradients, where it does not. Each of those gradients is one value
  // then. None for an op that is no branch. `outputs` are all that the op writes. Unimplemented for
  // one whose gradient is selected rows.
  absl::StatusOr<std::vector<VarId>> Kept(const Op& op, size_t index,
                                          const std::vector<VarId>& outputs);

  // Adds ops that give the gradient of `var`, one of Kept, before `op`: what it is behind the op
  // where the block does not run, else 0. What says so is noted before the op, as it may change
  // later.
  GradientSums::Part PassAround(const Op& op, size_t index, VarId var);
  // The same of what it is behind the op where the block runs, else 0.
  GradientSums::Part PassTaken(const Op& op, size_t index, VarId var);

 private:
  GradientSums::Part Select(const Op& op, size_t index, VarId var, bool if_taken);
  VarId NoteTaken(VarId condition, size_t index);

  BackwardContext& context_;
  const int32_t block_;
  GradientSums& sums_;
  ForwardVersions& versions_;
  InsertedOps& noted_;
};

}  // namespace interp
