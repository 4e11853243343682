// Which variables gradients flow through, in all blocks.
#pragma once

#include <string>
#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

// By VarId; a name that several blocks declare is one entry. Larger than need be where a variable
// is written several times: all its versions count as one.
struct GradientFlow {
  // Its value depends on a source through ops that have gradients.
  std::vector<bool> depends;
  // And the target depends on it.
  std::vector<bool> reached;
};

// Gradients of `target` with respect to `sources`; none flows through the variables of `blocked`,
// through those that say stop_gradient, or through what is no float.
// Ops with sub-blocks are followed into their blocks, whatever order ops run in: loops repeat them.
// Linear in arguments. Errors: blocks that several ops run, or that lie too deep.
absl::StatusOr<GradientFlow> FindGradientFlow(const Program& program, const OpRegistry& ops,
                                              VarId target, const std::vector<VarId>& sources,
                                              const std::vector<VarId>& blocked);

// The block that the op's attribute `sub_block` names; -1 when the definition says that the op runs
// no block. REQUIRES: VerifyProgram.
int32_t SubBlockOf(const OpDef* def, const Op& op);

}  // namespace interp
