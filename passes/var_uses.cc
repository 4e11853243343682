#include "passes/var_uses.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "core/each_argument.h"
#include "core/sub_blocks.h"
#include "passes/feed_fetch.h"
#include "passes/op_effects.h"

namespace interp {
namespace {

void Mention(VarUse& use, int32_t block) {
  ++use.mentions;
  if (use.block == VarUse::kNowhere) use.block = block;
  if (use.block != block) use.block = VarUse::kSeveralBlocks;
}

void Access(VarUse& use, int32_t position) {
  if (use.first < 0) use.first = position;
  use.last = position;
}

// Some ops name variables of their sub-blocks in string attributes (recurrent, while).
void MentionStrings(const Program& program, const Op& op, std::vector<VarUse>& uses) {
  const auto mention = [&](const std::string& name) {
    const VarId id = program.Find(name);
    if (id >= 0) uses[id].block = VarUse::kSeveralBlocks;
  };
  for (const Attr& attr : op.attrs) {
    if (attr.name == "op_callstack") continue;
    if (const auto* name = std::get_if<std::string>(&attr.value)) mention(*name);
    if (const auto* names = std::get_if<std::vector<std::string>>(&attr.value)) {
      for (const std::string& name : *names) mention(name);
    }
    if (const auto* var = std::get_if<VarName>(&attr.value)) mention(var->name);
    if (const auto* vars = std::get_if<VarNames>(&attr.value)) {
      for (const std::string& name : vars->names) mention(name);
    }
  }
}

void AddOp(const Program& program, const OpRegistry& ops, int32_t block, int32_t position,
           std::vector<VarUse>& uses) {
  const Op& op = program.blocks[block].ops[position];
  const OpDef* def = ops.Find(op.type);
  for (const Slot& slot : op.inputs) {
    const bool reads = ReadsMemory(def, slot);
    for (const VarId id : slot.args) {
      Mention(uses[id], block);
      if (!reads) {
        if (uses[id].shape_reads++ == 0) uses[id].first_shape_read = position;
        continue;
      }
      uses[id].read_first |= uses[id].first < 0;
      Access(uses[id], position);
      ++uses[id].reads;
      uses[id].fetched |= IsFetch(op);
    }
  }
  for (const VarId id : EachArgument(op.outputs)) {
    Mention(uses[id], block);
    Access(uses[id], position);
    uses[id].last_write = position;
    if (!LeavesUntouched(op, id)) {
      ++uses[id].writes;
      uses[id].last_change = position;
    }
    uses[id].fed |= IsFeed(op);
  }
  if (HasSubBlock(op)) MentionStrings(program, op, uses);
}

}  // namespace

bool HasOpOf(const Program& program, absl::Span<const absl::string_view> types) {
  const std::vector<Op>& ops = program.blocks[0].ops;
  return std::any_of(ops.begin(), ops.end(),
                     [types](const Op& op) { return absl::c_linear_search(types, op.type); });
}

std::vector<VarUse> FindVarUses(const Program& program, const OpRegistry& ops) {
  std::vector<VarUse> uses(program.names.size());
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    const Block& block = program.blocks[b];
    for (size_t i = 0; i < block.ops.size(); ++i) {
      AddOp(program, ops, static_cast<int32_t>(b), static_cast<int32_t>(i), uses);
    }
  }
  for (const Block& block : program.blocks) {
    for (const Var& var : block.vars) {
      uses[var.id].var = &var;
      uses[var.id].persistable |= var.persistable;
    }
  }
  // Not a variable: every use stands for "no argument here".
  if (const VarId empty = program.Find(kEmptyVarName); empty >= 0) {
    uses[empty] = VarUse{};
    uses[empty].block = VarUse::kSeveralBlocks;
  }
  return uses;
}

}  // namespace interp
