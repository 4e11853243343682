#include "passes/import/expand_ops.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/expansion.h"

namespace interp {
namespace {

absl::Status ExpandBlock(Program& program, Block& block) {
  std::vector<Op> ops;
  for (size_t i = 0; i < block.ops.size(); ++i) {
    Op& op = block.ops[i];
    const ExpansionDef* const def = FindExpansion(op.type);
    if (def == nullptr) {
      ops.push_back(std::move(op));
      continue;
    }
    Expansion expansion(program, op);
    absl::Status status = def->expand(expansion);
    absl::StatusOr<std::vector<Op>> parts = std::move(expansion).Take();
    if (status.ok()) status = parts.status();
    if (!status.ok()) {
      return Annotate(status, absl::StrCat("block ", block.idx, ", op #", i, " ", op.type));
    }
    std::move(parts->begin(), parts->end(), std::back_inserter(ops));
  }
  block.ops = std::move(ops);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Program> ExpandOps(Program program, const PassContext& /*context*/) {
  for (Block& block : program.blocks) {
    const bool expands = std::any_of(block.ops.begin(), block.ops.end(), [](const Op& op) {
      return FindExpansion(op.type) != nullptr;
    });
    if (expands) INTERP_RETURN_IF_ERROR(ExpandBlock(program, block));
  }
  return program;
}

}  // namespace interp
