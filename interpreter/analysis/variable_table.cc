#include "interpreter/analysis/variable_table.h"

#include <algorithm>

namespace interp {
namespace {

PlanVar TableEntry(const Program& program, const BlockTree& tree, int32_t block, VarId id) {
  PlanVar entry;
  entry.name = program.names[id];
  entry.program_var = id;
  entry.persistable = tree.persistable[id];
  const Var* var = tree.Declaration(block, id);
  if (var == nullptr) return entry;
  entry.kind = var->kind;
  entry.dtype = var->dtype;
  entry.declared = true;
  entry.persistable |= var->kind == VarKind::kFeedMinibatch || var->kind == VarKind::kFetchList;
  entry.constant = entry.persistable && !tree.written[id];
  entry.settled = entry.persistable && entry.kind == VarKind::kLodTensor;
  // Of a persistable variable no dims may be left out ones (core/io/param_decl.h).
  const bool says_rank =
      var->dtype != DType::kUndefined && !(entry.persistable && var->dims.empty());
  if (says_rank) entry.rank = static_cast<int32_t>(var->dims.size());
  return entry;
}

// Values that pass from a block to its gradient: both plans see them.
void NoteGradients(const BlockTree& tree, int32_t block, Plan& plan) {
  const BlockNode& node = tree.nodes[block];
  for (const BlockSave& save : node.saved) {
    const VarId var = FindVar(plan, save.var);
    plan.saved.push_back({.var = var, .at_start = save.at_start});
    if (plan.vars[var].kind == VarKind::kLodTensor) plan.vars[var].settled = true;
  }
  plan.gradient_block = node.gradient;
  plan.forward_block = node.forward;
  if (node.forward < 0) return;
  for (const BlockSave& save : tree.nodes[node.forward].saved) {
    const VarId var = FindVar(plan, save.var);
    plan.inherited.push_back(var);
    if (plan.vars[var].kind == VarKind::kLodTensor) plan.vars[var].settled = true;
  }
}

}  // namespace

void BuildVariableTable(const Program& program, const BlockTree& tree, int32_t block, Plan& plan) {
  const BlockNode& node = tree.nodes[block];
  plan.vars.reserve(node.vars.size());
  for (const VarId id : node.vars) plan.vars.push_back(TableEntry(program, tree, block, id));
  plan.num_program_vars = static_cast<int32_t>(plan.vars.size());
  plan.captures.reserve(node.captures.size());
  for (const BlockCapture& use : node.captures) {
    const VarId var = FindVar(plan, use.var);
    plan.captures.push_back({.var = var, .read = use.read, .written = use.written});
    plan.vars[var].captured = true;
  }
  NoteGradients(tree, block, plan);
  // What sub-blocks write is seen by several plans.
  for (const int32_t child : node.children) {
    for (const BlockCapture& use : tree.nodes[child].captures) {
      if (use.written) plan.vars[FindVar(plan, use.var)].settled = true;
    }
  }
  for (const Capture& capture : plan.captures) {
    if (capture.written) plan.vars[capture.var].settled = true;
  }
}

VarId FindVar(const Plan& plan, VarId program_var) {
  const auto end = plan.vars.begin() + plan.num_program_vars;
  const auto it =
      std::lower_bound(plan.vars.begin(), end, program_var,
                       [](const PlanVar& var, VarId id) { return var.program_var < id; });
  return it != end && it->program_var == program_var ? static_cast<VarId>(it - plan.vars.begin())
                                                     : -1;
}

}  // namespace interp
