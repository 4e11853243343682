#include "passes/local_temporaries.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "passes/op_effects.h"
#include "passes/var_uses.h"

namespace interp {
namespace {

bool IsTemporary(const Program& program, const OpRegistry& ops, VarId id, const VarUse& use) {
  if (use.block != 0 || use.fed || use.read_first || use.reads == 0 || use.writes == 0) {
    return false;
  }
  if (use.first_shape_read >= 0 && use.first_shape_read <= use.first) return false;
  const Op& writer = program.blocks[0].ops[use.first];
  return !LeavesUntouched(writer, id) && !MaySecretlyShare(writer, ops.Find(writer.type));
}

bool MayBeTemporary(const Var& var) {
  return var.persistable && !var.is_parameter && var.kind == VarKind::kLodTensor;
}

}  // namespace

absl::StatusOr<Program> LocalTemporaries(Program program, const PassContext& context) {
  std::vector<Var>& vars = program.blocks[0].vars;
  if (absl::c_none_of(vars, MayBeTemporary)) return program;
  const std::vector<VarUse> uses = FindVarUses(program, context.ops);
  std::vector<int> declarations(program.names.size(), 0);
  for (const Block& block : program.blocks) {
    for (const Var& var : block.vars) ++declarations[var.id];
  }
  for (Var& var : vars) {
    if (!MayBeTemporary(var) || declarations[var.id] > 1) continue;
    if (IsTemporary(program, context.ops, var.id, uses[var.id])) var.persistable = false;
  }
  return program;
}

}  // namespace interp
