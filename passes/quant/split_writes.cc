#include "passes/quant/split_writes.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/each_argument.h"
#include "passes/fresh_var.h"
#include "passes/op_effects.h"
#include "passes/quant/quantizers.h"
#include "passes/var_uses.h"

namespace interp {
namespace {

bool Mentions(const std::vector<Slot>& slots, VarId id) {
  for (const VarId arg : EachArgument(slots)) {
    if (arg == id) return true;
  }
  return false;
}

// Ops that PaddleSlim puts in several times for one value, always with the same names; of those,
// one whose X is declared as `result` is.
bool IsQuantizer(const Op& op, const Var& result, const std::vector<VarUse>& uses) {
  if (!IsLinearQuantizer(op)) return false;
  const Slot* const x = op.FindInput("X");
  if (x == nullptr || x->args.size() != 1) return false;
  const Var* const var = uses[x->args[0]].var;
  return var != nullptr && var->dims == result.dims;
}

// By VarId: whether the variable is written several times, after the first one always by a
// quantizer or, with `in_place`, in place.
std::vector<bool> FindSplittable(const Program& program, const OpRegistry& ops,
                                 const std::vector<VarUse>& uses, bool in_place) {
  std::vector<bool> splittable(uses.size());
  std::vector<bool> written(uses.size());
  for (size_t id = 0; id < uses.size(); ++id) {
    const VarUse& use = uses[id];
    splittable[id] = use.writes > 1 && use.block == 0 && !use.pinned() && !use.read_first &&
                     use.var != nullptr && use.var->kind == VarKind::kLodTensor;
  }
  for (const Op& op : program.blocks[0].ops) {
    const OpDef* const def = ops.Find(op.type);
    for (const VarId id : EachArgument(op.outputs)) {
      if (!splittable[id]) continue;
      const bool splits = !written[id] || (in_place && Mentions(op.inputs, id)) ||
                          IsQuantizer(op, *uses[id].var, uses);
      if (!splits || MaySecretlyShare(op, def) || LeavesUntouched(op, id)) splittable[id] = false;
      written[id] = true;
    }
  }
  return splittable;
}

Program Split(Program program, const OpRegistry& ops, bool in_place) {
  const std::vector<VarUse> uses = FindVarUses(program, ops);
  const std::vector<bool> splittable = FindSplittable(program, ops, uses, in_place);
  std::vector<VarId> names(uses.size(), -1);  // of the present value; -1: not written yet
  std::vector<Var> added;
  for (Op& op : program.blocks[0].ops) {
    for (VarId& id : EachArgument(op.inputs)) {
      if (splittable[id]) id = names[id];
    }
    for (VarId& id : EachArgument(op.outputs)) {
      if (!splittable[id]) continue;
      VarId& name = names[id];
      if (name < 0) {
        name = id;
        continue;
      }
      Var var = *uses[id].var;
      var.id = FreshVar(program, absl::StrCat(program.NameOf(name), ".1"));
      added.push_back(var);
      name = id = var.id;
    }
    // Pairs of the inplace pass stand for arguments by position and stay what they are.
  }
  std::vector<Var>& vars = program.blocks[0].vars;
  vars.insert(vars.end(), added.begin(), added.end());
  return program;
}

}  // namespace

Program SplitWrites(Program program, const OpRegistry& ops) {
  return Split(std::move(program), ops, /*in_place=*/true);
}

Program SplitQuantizers(Program program, const OpRegistry& ops) {
  return Split(std::move(program), ops, /*in_place=*/false);
}

}  // namespace interp
