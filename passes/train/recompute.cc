#include "passes/train/recompute.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/base/near_names.h"
#include "core/each_argument.h"
#include "core/edit_op.h"
#include "core/op_role.h"
#include "passes/declarations.h"
#include "passes/fresh_var.h"
#include "passes/op_effects.h"
#include "passes/train/append_backward.h"
#include "passes/verify.h"

namespace interp {
namespace {

class Recomputer {
 public:
  Recomputer(Program program, const OpRegistry& ops)
      : program_(std::move(program)), registry_(ops), declarations_(program_) {}

  absl::StatusOr<RecomputeResult> Run(const std::vector<std::string>& checkpoints) {
    FindParts();
    if (first_backward_ == ops().size()) {
      return InvalidArgument("the program has no op of the backward part (op_role 1)");
    }
    INTERP_ASSIGN_OR_RETURN(const std::vector<size_t> ends, FindEnds(checkpoints));
    size_t begin = 0;
    for (const size_t end : ends) {
      AddSegment(begin, end + 1);
      begin = end + 1;
    }
    Insert();
    RecomputeResult result;
    result.num_recomputed = num_recomputed_;
    result.program = std::move(program_);
    return result;
  }

 private:
  std::vector<Op>& ops() { return program_.blocks[0].ops; }

  // Where the backward part starts, who writes what, and what the backward part reads first where.
  void FindParts() {
    first_backward_ = static_cast<size_t>(
        std::find_if(ops().begin(), ops().end(),
                     [](const Op& op) { return (RoleOf(op) & kBackwardRole) != 0; }) -
        ops().begin());
    for (size_t i = 0; i < ops().size(); ++i) {
      for (const VarId id : EachArgument(ops()[i].outputs)) {
        writes_[id].push_back(i);
        if (i < first_backward_) writer_[id] = i;
      }
      if (i < first_backward_) continue;
      const OpDef* def = registry_.Find(ops()[i].type);
      for (const Slot& slot : ops()[i].inputs) {
        if (!ReadsMemory(def, slot)) continue;
        for (const VarId id : slot.args) first_read_.try_emplace(id, i);
      }
    }
  }

  absl::StatusOr<std::vector<size_t>> FindEnds(const std::vector<std::string>& checkpoints) {
    std::vector<size_t> ends;
    for (const std::string& name : checkpoints) {
      const VarId id = program_.Find(name);
      const auto writer = writer_.find(id);
      if (id < 0 || writer == writer_.end()) {
        const std::vector<absl::string_view> names(program_.names.begin(), program_.names.end());
        return NotFound("no op of the forward part writes checkpoint '", name, "'",
                        id < 0 ? NearNamesHint(name, names) : "");
      }
      kept_.insert(id);
      ends.push_back(writer->second);
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    return ends;
  }

  // Whether the op would read the same again behind the ops from its own to that at `end`.
  bool ReadsTheSame(size_t index, size_t end) const {
    const Op& op = program_.blocks[0].ops[index];
    const OpDef* def = registry_.Find(op.type);
    // The averages are no part of what it computes in training.
    const size_t begin = op.type == "batch_norm" ? index + 1 : index;
    return std::none_of(op.inputs.begin(), op.inputs.end(), [&](const Slot& slot) {
      if (!ReadsMemory(def, slot)) return false;
      return std::any_of(slot.args.begin(), slot.args.end(), [&](VarId id) {
        const auto writes = writes_.find(id);
        if (writes == writes_.end()) return false;
        const auto next = std::lower_bound(writes->second.begin(), writes->second.end(), begin);
        return next != writes->second.end() && *next < end;
      });
    });
  }

  bool CanRepeat(size_t index) {
    const Op& op = ops()[index];
    const OpDef* def = registry_.Find(op.type);
    if (def == nullptr || def->random || def->side_effect || def->sub_block != nullptr)
      return false;
    if (!ReadsTheSame(index, first_backward_)) return false;
    return std::all_of(op.outputs.begin(), op.outputs.end(), [&](const Slot& slot) {
      return std::all_of(slot.args.begin(), slot.args.end(), [&](VarId id) {
        const Var* var = declarations_.FindLocal(0, id);
        if (var != nullptr && var->persistable) return op.type == "batch_norm";
        const bool tensor = var == nullptr || var->kind == VarKind::kLodTensor;
        return tensor && (writes_[id].size() == 1 || program_.NameOf(id) == kEmptyVarName);
      });
    });
  }

  bool IsGivenUp(VarId id) {
    const Var* var = declarations_.FindLocal(0, id);
    return !kept_.contains(id) && (var == nullptr || !var->persistable) &&
           program_.NameOf(id) != kEmptyVarName;
  }

  // Adds again the ops of [begin, end) that values which the backward part reads depend on.
  void AddSegment(size_t begin, size_t end) {
    absl::flat_hash_set<VarId> wanted;
    std::vector<size_t> repeated;
    size_t first_read = ops().size();
    for (size_t i = end; i-- > begin;) {
      if (!CanRepeat(i)) continue;
      bool any = false;
      for (const VarId id : EachArgument(ops()[i].outputs)) {
        if (!IsGivenUp(id)) continue;
        const auto read = first_read_.find(id);
        if (read != first_read_.end()) first_read = std::min(first_read, read->second);
        any = any || read != first_read_.end() || wanted.contains(id);
      }
      if (!any) continue;
      repeated.push_back(i);
      for (const Slot& slot : ops()[i].inputs) wanted.insert(slot.args.begin(), slot.args.end());
    }
    if (first_read == ops().size()) return;
    // Where a parameter is updated before the first reader, what was computed is kept.
    const bool same = std::all_of(repeated.begin(), repeated.end(),
                                  [&](size_t i) { return ReadsTheSame(i, first_read); });
    if (!same) return;
    std::reverse(repeated.begin(), repeated.end());
    Repeat(repeated, first_read);
    ++num_segments_;
  }

  void Repeat(const std::vector<size_t>& repeated, size_t before) {
    std::vector<Op>& added = insertions_[before];
    absl::flat_hash_map<VarId, VarId> names;  // of this segment alone: others are computed later
    for (const size_t i : repeated) {
      Op op = ops()[i];
      for (Slot& slot : op.inputs) Rename(names, slot);
      for (VarId& id : EachArgument(op.outputs)) {
        if (IsGivenUp(id)) id = names[id] = Copy(id);
      }
      SetRole(op, kBackwardRole);
      // Old and new average in the proportion of 1 to 0.
      if (op.type == "batch_norm") {
        SetAttr(op, "momentum", 1.0F);
        std::erase_if(op.inputs, [](const Slot& slot) { return slot.name == "MomentumTensor"; });
      }
      added.push_back(std::move(op));
      ++num_recomputed_;
    }
    renamed_.insert(names.begin(), names.end());
  }

  static void Rename(const absl::flat_hash_map<VarId, VarId>& names, Slot& slot) {
    for (VarId& id : slot.args) {
      if (const auto name = names.find(id); name != names.end()) id = name->second;
    }
  }

  VarId Copy(VarId id) {
    int64_t number = num_segments_;
    const VarId renamed =
        FreshVar(program_, absl::StrCat(program_.NameOf(id), ".subprog_"), number);
    Var var;
    if (const Var* like = declarations_.FindLocal(0, id); like != nullptr) var = *like;
    var.id = renamed;
    var.need_check_feed = false;
    var.wire.clear();
    declarations_.Add(0, std::move(var));
    return renamed;
  }

  void Insert() {
    std::vector<Op> old = std::move(ops());
    ops().clear();
    for (size_t i = 0; i < old.size(); ++i) {
      if (const auto added = insertions_.find(i); added != insertions_.end()) {
        for (Op& op : added->second) ops().push_back(std::move(op));
      }
      if (i >= first_backward_) {
        // Shapes stay where the memory has gone.
        const OpDef* def = registry_.Find(old[i].type);
        for (Slot& slot : old[i].inputs) {
          if (ReadsMemory(def, slot)) Rename(renamed_, slot);
        }
      }
      ops().push_back(std::move(old[i]));
    }
  }

  Program program_;
  const OpRegistry& registry_;
  Declarations declarations_;
  size_t first_backward_ = 0;
  absl::flat_hash_map<VarId, size_t> writer_;               // in the forward part
  absl::flat_hash_map<VarId, std::vector<size_t>> writes_;  // in block 0, ascending
  absl::flat_hash_map<VarId, size_t> first_read_;           // in the backward part and behind it
  absl::flat_hash_set<VarId> kept_;                         // checkpoints
  absl::flat_hash_map<VarId, VarId> renamed_;
  absl::flat_hash_map<size_t, std::vector<Op>> insertions_;  // by the op that they precede
  int num_segments_ = 0;
  int num_recomputed_ = 0;
};

}  // namespace

absl::StatusOr<RecomputeResult> Recompute(Program program,
                                          const std::vector<std::string>& checkpoints,
                                          const OpRegistry& ops) {
  INTERP_RETURN_IF_ERROR(VerifyStructure(program));
  return Recomputer(std::move(program), ops).Run(checkpoints);
}

}  // namespace interp
