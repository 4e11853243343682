#include "passes/train/earlier_gradients.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/gradient.h"
#include "core/op_role.h"
#include "core/sub_blocks.h"
#include "passes/op_effects.h"

namespace interp {
namespace {

using Renames = absl::flat_hash_map<VarId, VarId>;

VarId Lookup(const Renames& renames, VarId id) {
  const auto found = renames.find(id);
  return found == renames.end() ? id : found->second;
}

// A word that no name has in it.
std::string FreshMark(const Program& program) {
  std::string mark = "@EARLIER";
  const auto has_mark = [&](const std::string& name) { return absl::StrContains(name, mark); };
  while (std::any_of(program.names.begin(), program.names.end(), has_mark)) mark += "_";
  return mark;
}

void RenameSlots(const Renames& renames, std::vector<Slot>& slots) {
  for (Slot& slot : slots) {
    for (VarId& arg : slot.args) arg = Lookup(renames, arg);
  }
}

// Gradient ops name the gradients of parameters in an attribute.
void RenameRoleVars(const Program& program, const Renames& renames, Op& op) {
  for (Attr& attr : op.attrs) {
    auto* const names = std::get_if<std::vector<std::string>>(&attr.value);
    if (attr.name != "op_role_var" || names == nullptr) continue;
    for (std::string& name : *names) {
      const VarId id = program.Find(name);
      if (id >= 0) name = program.NameOf(Lookup(renames, id));
    }
  }
}

void RenameInBlock(Block& block, const Renames& renames) {
  for (Var& var : block.vars) var.id = Lookup(renames, var.id);
  for (Op& op : block.ops) {
    RenameSlots(renames, op.inputs);
    RenameSlots(renames, op.outputs);
  }
}

// The arguments of the ops, each once.
std::vector<VarId> UsedInBlock(const Block& block) {
  std::vector<VarId> used;
  for (const Op& op : block.ops) {
    for (const std::vector<Slot>* slots : {&op.inputs, &op.outputs}) {
      const std::vector<VarId> args = ArgumentsOf(*slots);
      used.insert(used.end(), args.begin(), args.end());
    }
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return used;
}

// The blocks that block 0 runs, directly or through others.
std::vector<int32_t> OtherBlocks(const Program& program) {
  std::vector<int32_t> blocks = {0};
  std::vector<bool> seen(program.blocks.size(), false);
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (const Op& op : program.blocks[blocks[i]].ops) {
      ForEachSubBlock(op, [&](int32_t inner) {
        if (!seen[inner]) blocks.push_back(inner);
        seen[inner] = true;
      });
    }
  }
  blocks.erase(blocks.begin());
  return blocks;
}

// What a block names is looked up in those around it, so it would be found no more.
absl::Status CheckOtherBlocks(const Program& program, const Renames& renames) {
  for (const int32_t block : OtherBlocks(program)) {
    for (const VarId id : UsedInBlock(program.blocks[block])) {
      if (!renames.contains(id)) continue;
      return Unimplemented("the program has a variable '", program.NameOf(id),
                           "' already, and block ", block,
                           " uses one of that name: expected a program without gradients");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status EarlierGradients::SetAside(Program& program) {
  first_new_ = static_cast<VarId>(program.names.size());
  std::vector<VarId> found;
  for (const VarId id : UsedInBlock(program.blocks[0])) {
    if (absl::StrContains(program.NameOf(id), kGradientSuffix)) found.push_back(id);
  }
  if (found.empty()) return absl::OkStatus();
  mark_ = FreshMark(program);
  for (const VarId id : found) {
    const std::string name =
        absl::StrReplaceAll(program.NameOf(id), {{std::string(kGradientSuffix), mark_}});
    aside_.emplace(id, program.Intern(name));
  }
  INTERP_RETURN_IF_ERROR(CheckOtherBlocks(program, aside_));
  RenameInBlock(program.blocks[0], aside_);
  for (Op& op : program.blocks[0].ops) {
    if (IsBackward(op)) SetRole(op, kForwardRole);
  }
  return absl::OkStatus();
}

VarId EarlierGradients::Now(VarId id) const { return Lookup(aside_, id); }

// A name as it is without the mark, or one that nobody has.
std::string EarlierGradients::FinalName(const Program& program, const std::string& name) const {
  const std::string plain = absl::StrReplaceAll(name, {{mark_, std::string(kGradientSuffix)}});
  const VarId taken = program.Find(plain);
  if (taken < 0 || (plain == name && !aside_.contains(taken))) return plain;
  for (int number = 0;; ++number) {
    std::string numbered = absl::StrCat(plain, "_", number);
    if (program.Find(numbered) < 0) return numbered;
  }
}

// Whether an op was made after the earlier ones were set aside. REQUIRES: final_ is complete.
bool EarlierGradients::IsNew(const Op& op) const {
  const std::vector<VarId> outputs = ArgumentsOf(op.outputs);
  return std::any_of(outputs.begin(), outputs.end(), [this](VarId id) {
    const auto found = final_.find(id);
    return found == final_.end() ? id >= first_new_ : !aside_.contains(found->second);
  });
}

absl::Status EarlierGradients::Restore(Program& program) {
  if (aside_.empty()) return absl::OkStatus();
  for (const auto& [id, aside] : aside_) final_.emplace(aside, id);
  for (const VarId id : UsedInBlock(program.blocks[0])) {
    if (final_.contains(id) || (id < first_new_ && !aside_.contains(id))) continue;
    const VarId now = program.Intern(FinalName(program, program.NameOf(id)));
    if (now != id) final_.emplace(id, now);
  }
  INTERP_RETURN_IF_ERROR(CheckOtherBlocks(program, final_));
  for (Op& op : program.blocks[0].ops) {
    if (IsNew(op)) RenameRoleVars(program, final_, op);
  }
  RenameInBlock(program.blocks[0], final_);
  return absl::OkStatus();
}

VarId EarlierGradients::After(VarId id) const { return Lookup(final_, id); }

}  // namespace interp
